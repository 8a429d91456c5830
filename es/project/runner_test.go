package project_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

func TestViews(t *testing.T) {
	t.Parallel()
	given := projecttest.Spec(t, newRegistry(), newSums).Given(thing("a", added{By: 1}), other(added{By: 5}), thing("b", added{By: 2}))
	given.When(thing("a", added{By: 3})).Then(project.Value{Key: "a", Data: []byte(`{"sum":4}`)})
	given.When(thing("x", spread{To: []string{"b", "c"}, By: 1})).
		Then(project.Value{Key: "b", Data: []byte(`{"sum":3}`)}, project.Value{Key: "c", Data: []byte(`{"sum":1}`)})
	given.When(thing("a", looked{})).ThenNothing()
	given.When(other(added{By: 1})).ThenNothing()
	given.When(thing("a", spoilt{})).ThenFails("spoilt")
}

func TestRunnerFoldsAndFollows(t *testing.T) {
	t.Parallel()
	s := store(t, history(40)...)
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, a), spec(newEverything, b)))
	want := map[string]project.Progress{"sums": {Event: 40, Revision: 40}, "everything": {Event: 40, Revision: 40}}
	if diff := cmp.Diff(want, r.wait(40)); diff != "" {
		t.Errorf("progress (-want +have):\n%s", diff)
	}
	projecttest.Append(t, newRegistry(), s, thing("t1", looked{}), thing("t1", added{By: 1}))
	want = map[string]project.Progress{"sums": {Event: 42, Revision: 41}, "everything": {Event: 42, Revision: 42}}
	if diff := cmp.Diff(want, r.wait(42)); diff != "" {
		t.Errorf("progress (-want +have):\n%s", diff)
	}
	if p, err := r.Wait(bounded(t), 41, "sums"); err != nil || len(p) != 1 {
		t.Errorf("wait for one view: %v, %v", p, err)
	}
	if p, err := r.Position("sums"); err != nil || p != want["sums"] {
		t.Errorf("position %+v, %v", p, err)
	}
	if _, err := r.Position("none"); err == nil {
		t.Error("a view that is none has a position")
	}
	status := r.Status(bounded(t))
	if !status.Healthy() || status.Tail != 42 || status.Views[0].State != project.StateRunning || status.Views[0].Behind != 0 {
		t.Errorf("status %+v", status)
	}
	if err := r.stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	if _, err := r.Wait(bounded(t), 43); !errors.Is(err, project.ErrStopped) {
		t.Errorf("wait after the end: %v", err)
	}
	if err := r.Run(bounded(t)); err == nil {
		t.Error("a runner ran twice")
	}
	same(t, s, newSums, a)
	same(t, s, newEverything, b)
	e := entries(t, a)[0]
	if e.Meta.Source.ID != projecttest.EventID(1) || e.Meta.Type != "thing.added.v1" || e.Meta.Actor != "a1" || e.Meta.OnBehalfOf != "a2" ||
		!e.Meta.Recorded.Equal(projecttest.Recorded(1)) {
		t.Errorf("beside the first value: %+v", e.Meta)
	}
}

func TestRunnerChecksItsConfig(t *testing.T) {
	t.Parallel()
	b := &projecttest.Bucket{}
	for name, cfg := range map[string]project.Config{
		"no store":         {Registry: newRegistry(), Views: []project.ViewSpec{spec(newSums, b)}},
		"no registry":      {Store: store(t), Views: []project.ViewSpec{spec(newSums, b)}},
		"no view":          {Store: store(t), Registry: newRegistry()},
		"no bucket":        {Store: store(t), Registry: newRegistry(), Views: []project.ViewSpec{{New: newSums}}},
		"two for a bucket": {Store: store(t), Registry: newRegistry(), Views: []project.ViewSpec{spec(newSums, b), spec(newSums, b)}},
	} {
		if _, err := project.New(cfg); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	specs, err := project.Specs(func() []project.View { return []project.View{newSums(), newEverything()} },
		func(string) (project.Bucket, error) { return b, nil })
	if err != nil || len(specs) != 2 || specs[1].New().Name() != "everything" {
		t.Errorf("specs %+v, %v", specs, err)
	}
}

// TestViewsFarApart has views that begin at different places: each value is still stored once.
func TestViewsFarApart(t *testing.T) {
	t.Parallel()
	s := store(t, history(600)...)
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	projecttest.Run(t, config(s, spec(newSums, a)), 600)
	projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}))
	projecttest.Run(t, config(s, spec(newSums, a), spec(newEverything, b)), 601)
	same(t, s, newSums, a)
	same(t, s, newEverything, b)
}

// TestViewStopsAlone is case C10 in its stopping form: a view that can't fold an event stops there, is seen to, and the
// others go on.
func TestViewStopsAlone(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}), thing("a", spoilt{}), thing("a", added{By: 1}))
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	clock := estest.NewClock()
	cfg := config(s, spec(newSums, a), spec(newEverything, b))
	cfg.Clock = clock.Now
	r := start(t, cfg)
	if _, err := r.Wait(bounded(t), 3, "everything"); err != nil {
		t.Fatal(err)
	}
	v := r.stopped("sums")
	if v.At != 2 || v.Position != (project.Progress{Event: 1, Revision: 1}) || v.Behind != 2 || !strings.Contains(v.Reason, "spoilt") || !v.Since.Equal(clock.Now()) {
		t.Errorf("status %+v", v)
	}
	if r.Status(bounded(t)).Healthy() {
		t.Error("healthy")
	}
	passed, err := r.Wait(bounded(t), 3)
	if !errors.Is(err, project.ErrStopped) || !strings.Contains(err.Error(), "sums") || passed["everything"].Event != 3 {
		t.Errorf("wait: %v, %v", passed, err)
	}
	if p, err := r.Wait(bounded(t), 1, "sums"); err != nil || p["sums"].Revision != 1 {
		t.Errorf("wait for what was passed: %v, %v", p, err)
	}
	if len(entries(t, a)) != 1 {
		t.Error("something was stored after the event that can't be folded")
	}
}

// TestUnknownTypes is case C25: an event of a newer program stops only the views that read its aggregate.
func TestUnknownTypes(t *testing.T) {
	t.Parallel()
	unreadable := func(s es.Store) {
		head := projecttestHead(t, s)
		m := (&es.Event{ID: "x", Type: "thing.added.v1", Ref: es.Ref{Aggregate: "other", Key: "o"}, Version: 1, Recorded: projecttest.Recorded(1), Body: []byte("\xc1"), Command: es.Cause{ID: "c"}}).Message(es.ContentTypeMsgpack)
		after := head
		head.Seal(&m)
		if err := es.Wait(bounded(t), s.Append(bounded(t), after, []es.Message{m})); err != nil {
			t.Fatal(err)
		}
	}
	s := store(t, thing("a", added{By: 1}), other(future{}))
	unreadable(s)
	projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}))
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, a), spec(newEverything, b)))
	if _, err := r.Wait(bounded(t), 4, "sums"); err != nil {
		t.Fatalf("a view that does not read the aggregate: %v", err)
	}
	if v := r.stopped("everything"); v.At != 2 || !strings.Contains(v.Reason, "thing.future.v1") {
		t.Errorf("a view that reads all: %+v", v)
	}
	want := []project.UnknownType{{Type: "thing.future.v1", Events: 1, First: 2, Last: 2}}
	status := r.Status(bounded(t))
	if diff := cmp.Diff(want, status.Unknown); diff != "" {
		t.Errorf("unknown types that came by (-want +have):\n%s", diff)
	}
	if status.Views[0].Unknown != nil || !cmp.Equal(want, status.Views[1].Unknown) {
		t.Errorf("unknown types by view: %+v", status.Views)
	}
	projecttest.Append(t, newerRegistry(), s, thing("a", future{}))
	if v := r.stopped("sums"); v.At != 5 || v.Position.Event != 4 {
		t.Errorf("a view that reads the aggregate: %+v", v)
	}
}

func projecttestHead(t testing.TB, s es.Store) es.Head {
	t.Helper()
	var head es.Head
	for _, err := range es.VerifyChain(&head, s.Read(bounded(t), 0)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return head
}

func TestMessageThatIsNoEvent(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}))
	after := projecttestHead(t, s)
	m := es.Message{Subject: "evt.other.o", Header: map[string][]string{}, Body: []byte("x")}
	after.Seal(&m)
	if err := es.Wait(bounded(t), s.Append(bounded(t), after, []es.Message{m})); err != nil {
		t.Fatal(err)
	}
	r := start(t, config(s, spec(newSums, &projecttest.Bucket{})))
	if v := r.stopped("sums"); v.At != 2 {
		t.Errorf("status %+v", v)
	}
}

func TestBrokenChainStopsEverything(t *testing.T) {
	t.Parallel()
	good := store(t, history(20)...)
	s := store(t)
	var after es.Head
	for m, err := range good.Read(bounded(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Sequence == 12 {
			m.Body = append(m.Body, 0)
		}
		if err := es.Wait(bounded(t), s.Append(bounded(t), after, []es.Message{m})); err != nil {
			t.Fatal(err)
		}
		after = estest.HeadOf(t, m)
	}
	a := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, a)))
	if err := <-r.ended; !errors.Is(err, es.ErrBrokenChain) {
		t.Errorf("run: %v", err)
	}
	r.ended <- nil
	status := r.Status(bounded(t))
	if status.Healthy() || !strings.Contains(status.Reason, "event 12") || status.Views[0].State != project.StateStopped {
		t.Errorf("status %+v", status)
	}
	for _, e := range entries(t, a) {
		if e.Meta.Source.Sequence > 11 {
			t.Errorf("value %d was made of what follows a changed event", e.Revision)
		}
	}
	if report := verify(t, s, newSums, a); report.OK() || report.Events != 11 || !strings.Contains(report.Chain, "event 12") {
		t.Errorf("verify: %+v", report)
	}

	// Taken up behind the damage, the chain holds again: the head is the event's own.
	b := &projecttest.Bucket{}
	projecttest.Run(t, config(good, spec(newSums, b)), 20)
	projecttest.Run(t, config(s, spec(newSums, b)), 20)
}

func TestStoreAwayForAWhile(t *testing.T) {
	t.Parallel()
	s := estest.NewFaulty(store(t, history(30)...))
	s.BreakReads()
	a := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, a)))
	r.until("sums", func(v project.ViewStatus) bool { return v.State != project.StateStopped })
	s.MendReads()
	r.wait(30)
	same(t, s, newSums, a)
}
