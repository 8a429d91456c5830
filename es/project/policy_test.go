package project_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

func newParking() project.View { return project.Park(newSums()) }

func parkedValue(key, record string) project.Value {
	return project.Value{Key: project.ParkedKey(es.Ref{Aggregate: "thing", Key: key}), Data: []byte(record)}
}

func TestParkingViews(t *testing.T) {
	t.Parallel()
	given := projecttest.Spec(t, newRegistry(), newParking).Given(thing("a", added{By: 1}), thing("b", added{By: 1}))
	given.When(thing("a", spoilt{})).Then(parkedValue("a", `{"event":3,"type":"thing.spoilt.v1","why":"unfolded"}`))
	behind := given.Given(thing("a", spoilt{}))
	behind.When(thing("a", added{By: 1})).Then(parkedValue("a", `{"event":3,"type":"thing.spoilt.v1","why":"unfolded","behind":1,"last":4}`))
	behind.When(thing("b", added{By: 1})).Then(project.Value{Key: "b", Data: []byte(`{"sum":2}`)})
	behind.Given(thing("a", looked{}), thing("b", added{By: 1})).When(thing("a", spoilt{})).
		Then(parkedValue("a", `{"event":3,"type":"thing.spoilt.v1","why":"unfolded","behind":2,"last":6}`))
	given.When(other(spoilt{})).ThenNothing()
	if project.PolicyOf(newParking()) != project.PolicyPark || project.PolicyOf(newSums()) != project.PolicyStop {
		t.Error("policies are mixed up")
	}
}

func TestParkRefusesAViewThatReadsAll(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it was taken")
		}
	}()
	project.Park(newEverything())
}

// spoiltHistory has poison of each kind among good events of several instances.
func spoiltHistory(t *testing.T) es.Store {
	t.Helper()
	s := store(t,
		thing("a", added{By: 1}), thing("b", added{By: 1}), thing("a", spoilt{}), thing("a", added{By: 1}), thing("c", future{}),
		thing("b", added{By: 1}), thing("c", added{By: 1}), thing("a", added{By: 1}),
	)
	head := projecttestHead(t, s)
	m := (&es.Event{ID: "x", Type: "thing.added.v1", Ref: es.Ref{Aggregate: "thing", Key: "d"}, Version: 1, Recorded: projecttest.Recorded(9), Body: []byte("\xc1"), Command: es.Cause{ID: "c"}}).Message(es.ContentTypeMsgpack)
	after := head
	head.Seal(&m)
	if err := es.Wait(bounded(t), s.Append(bounded(t), after, []es.Message{m})); err != nil {
		t.Fatal(err)
	}
	projecttest.Append(t, newRegistry(), s, thing("d", added{By: 1}), thing("b", added{By: 1}))
	return s
}

// TestParkedByName is cases C10, C21 and C25 in their parking form: what can't be folded is parked by name and seen to be,
// nothing is folded on a hole, and all others go on. The projector is killed at every put.
func TestParkedByName(t *testing.T) {
	t.Parallel()
	s := spoiltHistory(t)
	whole := &projecttest.Bucket{}
	r := start(t, config(s, spec(newParking, whole)))
	r.wait(11)
	want := []project.ParkedInstance{
		{Instance: "thing.a", Parked: project.Parked{Event: 3, Type: "thing.spoilt.v1", Why: "unfolded", Behind: 2, Last: 8}, Said: "it is spoilt"},
		{Instance: "thing.c", Parked: project.Parked{Event: 5, Type: "thing.future.v1", Why: "unknown-type", Behind: 1, Last: 7}},
		{Instance: "thing.d", Parked: project.Parked{Event: 9, Type: "thing.added.v1", Why: "unreadable", Behind: 1, Last: 10}},
	}
	v := r.until("sums", inState(project.StateRunning))
	for i, p := range v.Parked {
		if p.Said == "" {
			t.Errorf("%s: nobody says why", p.Instance)
		} else if i > 0 {
			v.Parked[i].Said = ""
		}
	}
	if diff := cmp.Diff(want, v.Parked); diff != "" || v.ParkedCount != 3 || v.Policy != project.PolicyPark {
		t.Errorf("parked (-want +have):\n%s", diff)
	}
	if diff := cmp.Diff([]project.UnknownType{{Type: "thing.future.v1", Events: 1, First: 5, Last: 5}}, v.Unknown); diff != "" {
		t.Errorf("unknown types (-want +have):\n%s", diff)
	}
	if r.Status(bounded(t)).Healthy() {
		t.Error("healthy with something parked")
	}
	same(t, s, newParking, whole)
	all := entries(t, whole)
	for k := 1; k <= len(all); k++ {
		b := &projecttest.Bucket{}
		killed, kill := context.WithCancel(bounded(t))
		faulty := &projecttest.Faulty{Bucket: b, Script: func(n int) projecttest.Fault {
			if n == k {
				kill()
			}
			if n >= k {
				return projecttest.FaultLostBefore
			}
			return projecttest.FaultNone
		}}
		first, err := project.New(config(s, spec(newParking, faulty)))
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Run(killed); err != nil {
			t.Fatal(err)
		}
		again := start(t, config(s, spec(newParking, b)))
		again.wait(11)
		if v := again.until("sums", inState(project.StateRunning)); v.ParkedCount != 3 {
			t.Errorf("killed at put %d: %+v", k, v.Parked)
		}
		if err := again.stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(all, entries(t, b), stored); diff != "" {
			t.Fatalf("killed at put %d (-want +have):\n%s", k, diff)
		}
	}
}

// TestSkipOfWhatIsParked leaves out an event that is parked: a fresh fold gives what stood behind it, and the bucket that has
// it parked is found to differ until it is mended.
func TestSkipOfWhatIsParked(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}), thing("a", spoilt{}), thing("a", added{By: 1}), thing("b", spoilt{}), thing("b", spoilt{}))
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newParking, b)))
	r.wait(5)
	projecttest.Append(t, newRegistry(), s, order("sums", skipped{Event: 2}), order("sums", skipped{Event: 5}))
	r.wait(7)
	if v := r.until("sums", inState(project.StateRunning)); v.ParkedCount != 2 || v.SkippedCount != 2 {
		t.Errorf("status %+v", v)
	}
	if report := verify(t, s, newParking, b); report.OK() || !strings.Contains(report.Buckets[0].Differences[0].Key, "thing.a") {
		t.Errorf("report %+v", report)
	}
	fresh := &projecttest.Bucket{}
	again := start(t, config(s, spec(newParking, fresh)))
	again.wait(7)
	if v := again.until("sums", inState(project.StateRunning)); v.ParkedCount != 1 || v.Parked[0].Instance != "thing.b" {
		t.Errorf("status %+v", v)
	}
	same(t, s, newParking, fresh)
	if e, err := fresh.Get(bounded(t), "a"); err != nil || string(e.Value) != `{"sum":2}` {
		t.Errorf("what stood behind it gives %s, %v", e.Value, err)
	}
	if e, err := fresh.Get(bounded(t), project.ParkedKey(es.Ref{Aggregate: "thing", Key: "a"})); err != nil || string(e.Value) != `{"event":2,"type":"thing.spoilt.v1","skipped":true}` {
		t.Errorf("record of the skip %s, %v", e.Value, err)
	}
	// Taken up from its bucket it goes on the same way.
	if err := again.stop(); err != nil {
		t.Error(err)
	}
	projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}), thing("b", added{By: 1}))
	projecttest.Run(t, config(s, spec(newParking, fresh)), 9)
	same(t, s, newParking, fresh)
}
