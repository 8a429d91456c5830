package store

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	gocmp "github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

// strange records an event of a type that this program does not know.
func (r *recorder) strange(of es.Ref) uint64 {
	r.t.Helper()
	e := r.addStored(es.Event{Ref: of, Type: of.Aggregate + ".danced.v9", Body: []byte{0x80}})
	r.flush()
	return e.Sequence
}

// order records what somebody decides about the store.
func (r *recorder) order(fact any) {
	r.t.Helper()
	r.add(es.Event{Ref: es.Ref{Aggregate: events.AggregateProjection, Key: es.Key(audit.StoreView)}, Command: es.Cause{Actor: "ann"}}, fact)
	r.flush()
}

// untilState waits until the state of a store is as it should be.
func untilState(t *testing.T, s *Store, what string, is func(audit.StoreState) bool) audit.StoreState {
	t.Helper()
	ctx, cancel := contextOf(t)
	defer cancel()
	for {
		state, moved, _ := s.track.look()
		if is(state) {
			return state
		}
		select {
		case <-moved:
		case <-ctx.Done():
			t.Fatalf("%s: it is %+v", what, state)
		}
	}
}

// TestParks goes on past an event that it can't fold, with all others than those of the same instance, and says so where an answer
// touches it; after a restart too.
func TestParks(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	at := r.strange(ref("n1", "web"))
	r.assign("n1", "web", "v2")
	r.assign("n1", "pay", "v1")
	path := filepath.Join(t.TempDir(), "audit.db")
	for _, round := range []string{"at first", "after a restart"} {
		s, err := New(withDefaults(t, Config{Events: r.stream, Path: path}))
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, s)
		caughtUp(t, s, r.stream)
		if web, pay := stands(t, s, "n1", "web"), stands(t, s, "n1", "pay"); web != "v1" || pay != "v1" {
			t.Errorf("%s web stands at %q and pay at %q, want what was before, and all others", round, web, pay)
		}
		state := untilState(t, s, round, func(state audit.StoreState) bool { return state.ParkedCount > 0 })
		want := []project.ParkedInstance{{
			Instance: "assignment.n1.web", Parked: project.Parked{Event: at, Type: "assignment.danced.v9", Why: "unknown-type", Behind: 1, Last: at + 1}, Said: state.Parked[0].Said,
		}}
		if diff := gocmp.Diff(want, state.Parked); diff != "" || state.Stopped != "" || !strings.Contains(state.Parked[0].Said, "danced") {
			t.Errorf("%s: state %+v (-want +got):\n%s", round, state, diff)
		}
		for _, c := range []struct {
			of      string
			ask     func() (audit.Basis, error)
			touches bool
		}{
			{"as-of of all", func() (audit.Basis, error) {
				a, err := s.AsOf(t.Context(), audit.AsOfQuestion{})
				return a.Basis, err
			}, true},
			{"as-of of the other", func() (audit.Basis, error) {
				a, err := s.AsOf(t.Context(), audit.AsOfQuestion{Module: "pay"})
				return a.Basis, err
			}, false},
			{"blame", func() (audit.Basis, error) {
				a, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1", Module: "web"})
				return a.Basis, err
			}, true},
			{"blame of the other", func() (audit.Basis, error) {
				a, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1", Module: "pay"})
				return a.Basis, err
			}, false},
			{"diff", func() (audit.Basis, error) {
				a, err := s.Diff(t.Context(), audit.DiffQuestion{From: audit.Side{Node: "n1"}, To: audit.Side{Node: "n2"}})
				return a.Basis, err
			}, true},
			{"trace", func() (audit.Basis, error) {
				a, err := s.Trace(t.Context(), audit.TraceQuestion{Of: "n1/pay"})
				return a.Basis, err
			}, true},
			{"report", func() (audit.Basis, error) {
				a, err := s.Report(t.Context(), audit.ReportQuestion{Report: audit.ReportDeliveries, Module: "web"})
				return a.Basis, err
			}, true},
			{"sql", func() (audit.Basis, error) {
				a, err := s.SQL(t.Context(), audit.SQLQuestion{Query: "SELECT 1"})
				return a.Basis, err
			}, true},
		} {
			basis, err := c.ask()
			var want []audit.Missing
			if c.touches {
				want = []audit.Missing{{Event: at, Instance: "assignment.n1.web", Type: "assignment.danced.v9", Why: "unknown-type", Reason: state.Parked[0].Said, Behind: 1}}
			}
			if diff := gocmp.Diff(want, basis.Missing); diff != "" || err != nil || basis.MissingCount != len(want) {
				t.Errorf("%s, %s (%v, -want +got):\n%s", round, c.of, err, diff)
			}
		}
		page, err := s.Log(t.Context(), audit.LogQuestion{Node: "n1", Module: "web"})
		if err != nil || len(page.Items) != 3 {
			t.Errorf("%s the log has %+v (%v), want all three events", round, page.Items, err)
		}
		stop()
	}
}

// TestSaysWhatItCanNotTell tells of an instance that was parked at its first event why nothing is known of it.
func TestSaysWhatItCanNotTell(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.strange(ref("n1", "web"))
	s := running(t, Config{Events: r.stream})
	caughtUp(t, s, r.stream)
	_, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1", Module: "web"})
	if !errors.Is(err, audit.ErrNotFound) || !strings.Contains(errors.FlattenHints(err), "can't be folded") {
		t.Errorf("blame gave %v with the hint %q", err, errors.FlattenHints(err))
	}
}

// TestSkips builds the file anew without an event that somebody has left out, and folds what was parked behind it.
func TestSkips(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	at := r.strange(ref("n1", "web"))
	r.assign("n1", "web", "v2")
	path := filepath.Join(t.TempDir(), "audit.db")
	s, err := New(withDefaults(t, Config{Events: r.stream, Path: path}))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, s)
	caughtUp(t, s, r.stream)
	r.order(events.ProjectionSkipped{Event: at, Reason: "a mistake"})
	check := func(s *Store, round string) {
		t.Helper()
		state := untilState(t, s, round, func(state audit.StoreState) bool { return state.SkippedCount == 1 && !state.Building })
		if k := state.Skipped[0]; k.Event != at || k.Reason != "a mistake" || k.By != "ann" || state.ParkedCount != 0 {
			t.Errorf("%s: %+v", round, state)
		}
		caughtUp(t, s, r.stream)
		if got := stands(t, s, "n1", "web"); got != "v2" {
			t.Errorf("%s %q stands, want what came behind", round, got)
		}
		a, err := s.AsOf(t.Context(), audit.AsOfQuestion{Node: "n1"})
		want := []audit.Missing{{Event: at, Instance: "assignment.n1.web", Type: "assignment.danced.v9", Why: audit.WhySkipped, Reason: "a mistake"}}
		if diff := gocmp.Diff(want, a.Missing); diff != "" || err != nil {
			t.Errorf("%s (%v, -want +got):\n%s", round, err, diff)
		}
		rows, err := s.SQL(t.Context(), audit.SQLQuestion{Query: "SELECT event, instance, why, reason FROM missing"})
		if err != nil || len(rows.Rows) != 1 || rows.Rows[0][2] != "skipped" {
			t.Errorf("%s: in SQL %v (%v)", round, rows.Rows, err)
		}
	}
	check(s, "when it is ordered")
	stop()
	check(running(t, Config{Events: r.stream, Path: path}), "after a restart")
}

// TestPauses takes nothing in while it is paused, and answers with what it has.
func TestPauses(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	s := running(t, Config{Events: r.stream})
	caughtUp(t, s, r.stream)
	r.order(events.ProjectionPaused{Reason: "the disk is moved"})
	untilState(t, s, "pausing", func(state audit.StoreState) bool { return state.Paused != nil })
	last := r.assign("n1", "web", "v2")
	if err := s.Wait(t.Context(), last); !errors.Is(err, audit.ErrStoreBehind) || !strings.Contains(err.Error(), "the disk is moved") {
		t.Errorf("waiting for a paused store gave %v", err)
	}
	if got := stands(t, s, "n1", "web"); got != "v1" {
		t.Errorf("%q stands while it is paused", got)
	}
	// What is no event is written all the same.
	if err := s.AddRefused(t.Context(), 0, audit.Refused{Sequence: 1, Status: "rejected"}); err != nil {
		t.Error(err)
	}
	r.order(events.ProjectionResumed{})
	untilState(t, s, "resuming", func(state audit.StoreState) bool { return state.Paused == nil })
	caughtUp(t, s, r.stream)
	if got := stands(t, s, "n1", "web"); got != "v2" {
		t.Errorf("%q stands after it", got)
	}
}

// TestStopsAtWhatIsNoEvent stops where nobody can say whose event it is, while a file is built, until somebody has it left out.
func TestStopsAtWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	m := r.addNone(ref("n1", "web"))
	r.flush()
	r.assign("n1", "web", "v2")
	s := running(t, Config{Events: r.stream})
	state := untilState(t, s, "at no event", func(state audit.StoreState) bool { return state.Stopped != "" })
	if state.At != m.Sequence || state.Since.IsZero() || !strings.Contains(state.Stopped, "message 2") {
		t.Errorf("it has stopped as %+v", state)
	}
	r.order(events.ProjectionSkipped{Event: m.Sequence, Reason: "nobody's"})
	caughtUpLater(t, s, r.stream)
	if got := stands(t, s, "n1", "web"); got != "v2" {
		t.Errorf("%q stands", got)
	}
	a, err := s.AsOf(t.Context(), audit.AsOfQuestion{Node: "n2"})
	if diff := gocmp.Diff([]audit.Missing{{Event: m.Sequence, Why: audit.WhySkipped, Reason: "nobody's"}}, a.Missing); diff != "" || err != nil {
		t.Errorf("(%v, -want +got):\n%s", err, diff)
	}
}

// caughtUpLater waits for a store that has stopped and goes on by itself.
func caughtUpLater(t *testing.T, s *Store, stream es.Store) {
	t.Helper()
	tail, err := stream.Tail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	untilState(t, s, "going on", func(state audit.StoreState) bool {
		return !state.Building && state.Stopped == "" && state.Event >= tail
	})
}

// danced is what a newer program knows.
type danced struct{}

// TestReadsWhatItCouldNot builds the file anew for a program that knows the type of an event that is parked.
func TestReadsWhatItCouldNot(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	r.strange(ref("n1", "web"))
	path := filepath.Join(t.TempDir(), "audit.db")
	older, err := New(withDefaults(t, Config{Events: r.stream, Path: path}))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, older)
	caughtUp(t, older, r.stream)
	stop()
	newer := events.Registry()
	es.Upcast(newer, "assignment.danced.v9", func(danced) events.AssignmentEnded { return events.AssignmentEnded{Node: "n1", Module: "web"} })
	s := running(t, Config{Events: r.stream, Path: path, Registry: newer})
	caughtUp(t, s, r.stream)
	if state := s.Status(); state.ParkedCount != 0 {
		t.Errorf("it has still parked %+v", state.Parked)
	}
	if got := stands(t, s, "n1", "web"); got != "" {
		t.Errorf("%q stands, want that it has ended", got)
	}
}
