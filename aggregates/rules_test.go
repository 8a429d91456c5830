package aggregates_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func TestEffectiveTimes(t *testing.T) {
	t.Parallel()
	base := also(nodes("n1"), modules("web"))
	t.Run("too far ahead", func(t *testing.T) {
		t.Parallel()
		now := day.Add(time.Hour)
		given(t, base...).at(now).
			when(assign("n1", "web", "1"), effective(now.Add(5*time.Minute+1))).
			refused(es.StatusInvalid, "effective-ahead", "2026-05-01T13:05:00.000000001Z", "2026-05-01T13:00:00Z").
			when(assign("n1", "web", "1"), effective(now.Add(5*time.Minute))).accepted()
	})
	t.Run("before there were clocks", func(t *testing.T) {
		t.Parallel()
		given(t, base...).
			when(assign("n1", "web", "1"), effective(time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC))).refused(es.StatusInvalid, "effective-range")
	})
	t.Run("behind the newest", func(t *testing.T) {
		t.Parallel()
		given(t, base...).
			when(assign("n1", "web", "1"), effective(day)).accepted().
			when(assign("n1", "web", "2"), effective(day.Add(-time.Nanosecond))).rejected("effective-behind", "assignment n1.web", "2026-05-01T12:00:00Z", "--backfill").
			when(assign("n1", "web", "2"), effective(day)).accepted(). // at equal times the later sequence is later
			when(commands.RelabelNode{Node: "n1", Labels: map[string]string{"a": "b"}}, effective(day.Add(-time.Second))).rejected("effective-behind", "node n1")
	})
	t.Run("a clock that is behind", func(t *testing.T) {
		t.Parallel()
		given(t, base...).
			when(assign("n1", "web", "1"), effective(day.Add(time.Minute))).accepted().
			when(assign("n1", "web", "2")).accepted(). // who does not say when is never behind
			when(assign("n1", "web", "3"), effective(day.Add(time.Minute-time.Nanosecond))).rejected("effective-behind")
	})
	t.Run("each instance has its own", func(t *testing.T) {
		t.Parallel()
		given(t, also(nodes("n2"), base)...).
			when(assign("n1", "web", "1"), effective(day.Add(time.Minute))).accepted().
			when(assign("n2", "web", "1")).accepted()
	})
}

// TestOneCommandOverFourInstances covers case B09 in the world: one command over four instances gives four facts; with one
// of the four stale it gives none.
func TestOneCommandOverFourInstances(t *testing.T) {
	t.Parallel()
	base := also(nodes("n1"), []es.KeyedEvent{requiring("web", "a", "b", "c")}, modules("a", "b", "c"))
	given(t, base...).
		when(assign("n1", "web", "1")).
		then(assigned("n1", "web", "1"), assigned("n1", "a", "", "web"), assigned("n1", "b", "", "web"), assigned("n1", "c", "", "web"))

	later := day.Add(3 * time.Minute)
	s := given(t, base...).
		when(assign("n1", "b", "1"), effective(later)).accepted().
		when(unassign("n1", "b"), effective(later)).accepted().
		when(assign("n1", "web", "1"), effective(day)).rejected("effective-behind", "assignment n1.b", "2026-05-01T12:03:00Z")
	for _, m := range []string{"web", "a", "c"} {
		if got := s.world.Version(commands.AssignmentRef("n1", m)); got != 0 {
			t.Errorf("%s has %d facts of a command that was refused", m, got)
		}
	}
}

// TestEndAndAssignInTurn covers case B11 in the world: ten callers end and assign the same key in turn, in any order, and
// nobody is told anything but that it is done or so already.
func TestEndAndAssignInTurn(t *testing.T) {
	t.Parallel()
	s := given(t, also(nodes("n1"), modules("web"))...).when(assign("n1", "web", "0")).accepted()
	ref := commands.AssignmentRef("n1", "web")
	stands := true
	for i := range 40 {
		caller := i * 7 % 10
		before := s.world.Version(ref)
		var o outcome
		if caller%2 == 0 {
			o = s.when(unassign("n1", "web"))
		} else {
			o = s.when(assign("n1", "web", "0"))
		}
		if wants := caller%2 == 1; wants == stands {
			o.unchanged()
		} else {
			o.accepted()
			stands = wants
			before++
		}
		if got := s.world.Version(ref); got != before {
			t.Fatalf("step %d: version %d, want %d", i, got, before)
		}
	}
}

func TestTooManyFacts(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.apply(day, nodes("n1")...)
	// A chain of modules, each of which requires the next.
	for i := range es.MaxAppendMessages + 1 {
		l.apply(day, requiring(fmt.Sprintf("m%d", i), fmt.Sprintf("m%d", i+1)))
	}
	l.apply(day, modules(fmt.Sprintf("m%d", es.MaxAppendMessages+1))...)
	_, err := l.do(assign("n1", "m0", "1"), day)
	var r *es.Refusal
	if !errors.As(err, &r) || r.Code != "too-many" || !strings.Contains(r.Message, "1002 events") {
		t.Fatalf("got %v", err)
	}
	if facts, err := l.do(assign("n1", "m2", "1"), day); err != nil || len(facts) != 1000 {
		t.Errorf("got %d events and %v", len(facts), err)
	}
}

func TestApplyRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	ref := commands.NodeRef("n1")
	fact := events.NodeRegistered{Node: "n1", ManagedBy: "agent"}
	good := es.Event{Sequence: 1, Ref: ref, Version: 1, Recorded: day, Effective: day, Data: fact}
	cases := map[string]func(*es.Event){
		"no data":                      func(e *es.Event) { e.Data = nil },
		"data of another kind":         func(e *es.Event) { e.Data = commands.RegisterNode{} },
		"a fact of another aggregate":  func(e *es.Event) { e.Data = events.ModuleEnded{} },
		"a version that was there":     func(e *es.Event) { e.Version = 0 },
		"a version that leaves a hole": func(e *es.Event) { e.Version = 2 },
		"a lease without a time": func(e *es.Event) {
			e.Ref, e.Data = commands.LeaseRef("l"), events.LeaseTaken{Name: "l", Holder: "h", TTL: "soon"}
		},
		"a module with a key that is no name": func(e *es.Event) {
			e.Ref, e.Data = es.Ref{Aggregate: "module", Key: "a b"}, events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "a b", Requires: []string{"c"}}}
		},
		"an assignment with a key of one name": func(e *es.Event) {
			e.Ref, e.Data = es.Ref{Aggregate: "assignment", Key: "n1"}, events.AssignmentAssigned{}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := aggregates.NewWorld(aggregates.Config{})
			if err != nil {
				t.Fatal(err)
			}
			e := good
			change(&e)
			if err := w.Apply(e); err == nil {
				t.Error("it was passed over")
			}
		})
	}
	w, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Apply(good); err != nil {
		t.Fatal(err)
	}
	if got := w.Version(ref); got != 1 {
		t.Errorf("version %d, want 1", got)
	}
	if got := w.Version(es.Ref{Aggregate: "rollout", Key: "r1"}); got != 0 {
		t.Errorf("an instance without events has version %d", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := aggregates.NewWorld(aggregates.Config{MaxValueBytes: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}
