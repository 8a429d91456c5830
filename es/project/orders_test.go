package project_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

func inState(want project.State) func(project.ViewStatus) bool {
	return func(v project.ViewStatus) bool { return v.State == want }
}

// TestPause pauses a view and lets it go on, while another goes on all the time.
func TestPause(t *testing.T) {
	t.Parallel()
	s := store(t, history(20)...)
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, a), spec(newEverything, b)))
	r.wait(20)
	at := projecttest.Append(t, newRegistry(), s, order("sums", paused{}))
	r.until("sums", inState(project.StatePaused))
	tail := projecttest.Append(t, newRegistry(), s, history(20)...)
	if _, err := r.Wait(bounded(t), tail, "everything"); err != nil {
		t.Fatal(err)
	}
	v := r.until("sums", inState(project.StatePaused))
	if v.Position.Event < 20 || v.Position.Event > at || v.Behind != tail-v.Position.Event || v.LagSeconds <= 0 {
		t.Errorf("status %+v", v)
	}
	want := project.Decision{Order: at, Reason: "by hand", By: "a7", At: projecttest.Recorded(at)}
	if diff := cmp.Diff(&want, v.Paused); diff != "" {
		t.Errorf("paused (-want +have):\n%s", diff)
	}
	if _, err := r.Wait(bounded(t), tail, "sums"); !errors.Is(err, project.ErrStopped) || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("wait for a paused view: %v", err)
	}
	projecttest.Append(t, newRegistry(), s, order("everything", resumed{}), order("sums", resumed{}))
	r.passes(tail + 2)
	if v := r.until("sums", inState(project.StateRunning)); v.Paused != nil {
		t.Errorf("status %+v", v)
	}
	same(t, s, newSums, a)
	same(t, s, newEverything, b)
}

// TestPausedAtTheStart has a view that was paused before the projector began, and one that is paused again while it catches up.
func TestPausedAtTheStart(t *testing.T) {
	t.Parallel()
	s := store(t, append(history(300), order("sums", paused{}))...)
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, b)))
	r.until("sums", inState(project.StatePaused))
	if n := len(entries(t, b)); n != 0 {
		t.Errorf("a paused view has stored %d values", n)
	}
	projecttest.Append(t, newRegistry(), s, order("sums", resumed{}), order("sums", paused{}), order("sums", resumed{}))
	r.passes(304)
	same(t, s, newSums, b)
}

// TestOrdersAreHeardFarBehind has a reader that does not come to the order in time: the order is found all the same.
func TestOrdersAreHeardFarBehind(t *testing.T) {
	t.Parallel()
	s := store(t, history(5000)...)
	hanging := newHanging(&projecttest.Bucket{}, 3)
	cfg := config(s, spec(newSums, hanging))
	cfg.MaxInFlight = 1
	cfg.MaxHold = limit // the reader waits for the view, and is far from the order
	r := start(t, cfg)
	hanging.wait(bounded(t))
	projecttest.Append(t, newRegistry(), s, order("sums", paused{}))
	r.until("sums", inState(project.StatePaused))
	hanging.release()
	projecttest.Append(t, newRegistry(), s, order("sums", resumed{}))
	r.passes(5002)
	same(t, s, newSums, hanging.Bucket)
}

// TestSkip is cases C10 and C21 in their stopping form: the view stops at the event that it can't fold, and goes on without
// it when a person says so; every later fold leaves it out too.
func TestSkip(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}), thing("a", spoilt{}), thing("a", added{By: 1}), thing("b", spoilt{}), thing("b", added{By: 2}))
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, b)))
	if v := r.stopped("sums"); v.At != 2 || v.Type != "thing.spoilt.v1" || !strings.Contains(v.Reason, "it is spoilt") {
		t.Errorf("status %+v", v)
	}
	projecttest.Append(t, newRegistry(), s, order("everything", skipped{Event: 2}), order("sums", skipped{Event: 2}))
	if v := r.until("sums", func(v project.ViewStatus) bool { return v.At == 4 }); v.State != project.StateStopped {
		t.Errorf("status %+v", v)
	}
	projecttest.Append(t, newRegistry(), s, order("sums", skipped{Event: 4}))
	r.passes(8)
	v := r.until("sums", inState(project.StateRunning))
	want := []project.Skip{
		{Event: 4, Decision: project.Decision{Order: 8, Reason: "by mistake", By: "a7", At: projecttest.Recorded(8)}},
		{Event: 2, Decision: project.Decision{Order: 7, Reason: "by mistake", By: "a7", At: projecttest.Recorded(7)}},
	}
	if diff := cmp.Diff(want, v.Skipped); diff != "" || v.SkippedCount != 2 {
		t.Errorf("skipped (-want +have):\n%s", diff)
	}
	if !r.Status(bounded(t)).Healthy() {
		t.Error("a view that has left out what it should is not healthy")
	}
	same(t, s, newSums, b)

	// One that begins when all of that is recorded comes to the same, byte for byte.
	fresh := &projecttest.Bucket{}
	projecttest.Run(t, config(s, spec(newSums, fresh)), 8)
	if diff := cmp.Diff(entries(t, b), entries(t, fresh), stored); diff != "" {
		t.Errorf("a fresh fold (-had stopped +began later):\n%s", diff)
	}
}

// TestSkipOfAnEventToCome leaves out an event that could be folded, before the view comes to it, and one it has passed.
func TestSkipOfAnEventToCome(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}), order("sums", skipped{Event: 3}), thing("a", added{By: 10}), thing("a", added{By: 100}))
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, b)))
	r.wait(4)
	same(t, s, newSums, b)
	if all := entries(t, b); len(all) != 2 || string(all[1].Value) != `{"sum":101}` {
		t.Errorf("%d values, the last is %s", len(all), all[len(all)-1].Value)
	}
	// Of one that was passed nothing is taken back; a check tells, since a fresh fold would leave it out.
	projecttest.Append(t, newRegistry(), s, order("sums", skipped{Event: 1}))
	r.wait(5)
	if report := verify(t, s, newSums, b); report.OK() || len(report.Buckets[0].Differences) == 0 {
		t.Errorf("report %+v", report)
	}
}

// TestSkipOfWhatCanNotBeStored leaves out an event whose value no bucket takes: the view has folded it by then.
func TestSkipOfWhatCanNotBeStored(t *testing.T) {
	t.Parallel()
	newBloated := func() project.View { return &bloated{sums{name: "sums", version: 1, state: map[string]int{}}} }
	s := store(t, thing("a", added{By: 1}), thing("large", added{By: 1}), thing("a", added{By: 1}))
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newBloated, b)))
	if v := r.stopped("sums"); v.At != 2 || v.Type != "thing.added.v1" {
		t.Errorf("status %+v", v)
	}
	projecttest.Append(t, newRegistry(), s, order("sums", skipped{Event: 2}))
	r.passes(4)
	same(t, s, newBloated, b)
}

// TestSkipOfWhatIsNoEvent leaves out a message that can't be read at all.
func TestSkipOfWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}))
	head := projecttestHead(t, s)
	m := es.Message{Subject: "evt.other.o", Header: map[string][]string{}, Body: []byte("x")}
	after := head
	head.Seal(&m)
	if err := es.Wait(bounded(t), s.Append(bounded(t), after, []es.Message{m})); err != nil {
		t.Fatal(err)
	}
	b := &projecttest.Bucket{}
	newParking := func() project.View { return project.Park(newSums()) }
	r := start(t, config(s, spec(newParking, b)))
	if v := r.stopped("sums"); v.At != 2 {
		t.Errorf("status %+v", v)
	}
	appendOrder(t, s, order("sums", skipped{Event: 2}))
	r.passes(3)
	same(t, s, newParking, b)
}

// appendOrder stores a fact after a message that is no event.
func appendOrder(t testing.TB, s es.Store, f projecttest.Fact) {
	t.Helper()
	head := projecttestHead(t, s)
	name, body, err := newRegistry().Encode(f.Data)
	if err != nil {
		t.Fatal(err)
	}
	m := (&es.Event{ID: "order", Type: name, Ref: f.Ref, Version: 1, Recorded: projecttest.Recorded(9), Body: body, Command: es.Cause{ID: "c"}}).Message(es.ContentTypeMsgpack)
	after := head
	head.Seal(&m)
	if err := es.Wait(bounded(t), s.Append(bounded(t), after, []es.Message{m})); err != nil {
		t.Fatal(err)
	}
}

// TestRetry takes a stopped view up again after its bucket was mended, without a new projector.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := store(t, history(20)...)
	b := &projecttest.Bucket{}
	projecttest.Run(t, config(s, spec(newSums, b)), 20)
	value := entries(t, b)[19].Value
	b.Change(20, func(e *project.Entry) { e.Value = []byte("nonsense") })
	r := start(t, config(s, spec(newSums, b)))
	r.stopped("sums")
	b.Change(20, func(e *project.Entry) { e.Value = value })
	if err := r.Retry("sums"); err != nil {
		t.Fatal(err)
	}
	r.until("sums", inState(project.StateRunning))
	same(t, s, newSums, b)
	if err := r.Retry("none"); err == nil {
		t.Error("a view that is none can be tried again")
	}
}

// TestOrdersOfANewerProgram are passed over.
func TestOrdersOfANewerProgram(t *testing.T) {
	t.Parallel()
	s := store(t, order("sums", future{}), order("sums", paused{}), order("sums", looked{}))
	c, err := project.ReadControl(bounded(t), s, newRegistry(), orders(), "sums")
	if err != nil || c.Paused == nil || c.Through != 2 || c.Skips(1) {
		t.Errorf("control %+v, %v", c, err)
	}
	if c, err := project.ReadControl(bounded(t), s, newRegistry(), nil, "sums"); err != nil || c.Paused != nil {
		t.Errorf("without orders: %+v, %v", c, err)
	}
}
