package projecttest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
)

// Scenario states what a view makes of an event, given those before it.
//
//	s := projecttest.Spec(t, registry, nodes.New)
//	s.Given(registered).When(retired).Then(project.Value{Key: "n1", Data: …})
//
// Whatever is stated, three more things are checked: the view is deterministic; taken up from the values that stand, at
// any point, it gives the same next values; and run over a bucket, stopped and run again, it stores each value once.
type Scenario struct {
	t        testing.TB
	registry *es.Registry
	newView  func() project.View
	given    []Fact
}

// Spec begins a scenario.
func Spec(t testing.TB, registry *es.Registry, newView func() project.View) *Scenario {
	return &Scenario{t: t, registry: registry, newView: newView}
}

// Given adds facts that stand already. The scenario itself stays as it is, so that several can begin the same way.
func (s *Scenario) Given(facts ...Fact) *Scenario {
	next := *s
	next.given = append(append([]Fact(nil), s.given...), facts...)
	return &next
}

// When is the event that matters.
func (s *Scenario) When(fact Fact) *Outcome {
	s.t.Helper()
	store, read := events(s.t, s.registry, append(append([]Fact(nil), s.given...), fact))
	o := &Outcome{scenario: s, store: store, events: read}
	o.fold()
	return o
}

// Outcome is what came of the event. One of its Then methods MUST be called.
type Outcome struct {
	scenario *Scenario
	store    *memstore.Store
	events   []es.Event
	before   []project.Value // what stood before, in the order it was given
	values   []project.Value
	err      error
}

// fold folds the whole history, and checks at every event that the view could have been taken up from the bucket there.
func (o *Outcome) fold() {
	t := o.scenario.t
	t.Helper()
	view := o.scenario.newView()
	for i, e := range o.events {
		values, err := o.step(view, e)
		if i == len(o.events)-1 {
			o.values, o.err = values, err
			break
		}
		if err != nil {
			t.Fatalf("given event %d (%s on %s) can't be folded: %v", e.Sequence, e.Type, e.Ref, err)
		}
		o.before = append(o.before, values...)
	}
}

// step folds one event with the view and with one that is taken up from the values that stand, which must agree.
func (o *Outcome) step(view project.View, e es.Event) ([]project.Value, error) {
	t := o.scenario.t
	t.Helper()
	if selective, ok := view.(project.Selective); ok && !reads(selective, e.Ref.Aggregate) {
		return nil, nil
	}
	loaded := o.scenario.newView()
	for _, v := range newest(o.before) {
		if err := loaded.Load(v.Key, v.Data); err != nil {
			t.Fatalf("the value of key %s does not load before event %d: %v", v.Key, e.Sequence, err)
		}
	}
	values, err := view.Fold(e)
	again, errAgain := loaded.Fold(e)
	if (err == nil) != (errAgain == nil) {
		t.Fatalf("event %d (%s): the view gives error %v, taken up from its values it gives %v", e.Sequence, e.Type, err, errAgain)
	}
	if diff := cmp.Diff(readable(values), readable(again)); diff != "" {
		t.Fatalf("event %d (%s): taken up from its values the view gives others (-folded +taken up):\n%s", e.Sequence, e.Type, diff)
	}
	seen := map[string]bool{}
	for _, v := range values {
		if seen[v.Key] {
			t.Fatalf("event %d (%s) gives two values for key %s", e.Sequence, e.Type, v.Key)
		}
		seen[v.Key] = true
	}
	return values, err
}

// Then states the values that the event leads to, in order.
func (o *Outcome) Then(want ...project.Value) {
	t := o.scenario.t
	t.Helper()
	if o.err != nil {
		t.Fatalf("the event can't be folded: %v", o.err)
	}
	if diff := cmp.Diff(readable(want), readable(o.values)); diff != "" {
		t.Errorf("values (-want +given):\n%s", diff)
	}
	o.onceEach()
}

// ThenNothing states that the event leads to no value.
func (o *Outcome) ThenNothing() {
	o.scenario.t.Helper()
	o.Then()
}

// ThenFails states that the event can't be folded, for a reason that contains the text, and that it leaves the view as it
// was.
func (o *Outcome) ThenFails(reason string) {
	t := o.scenario.t
	t.Helper()
	if o.err == nil {
		t.Fatalf("the event is folded to %v, want an error with %q", readable(o.values), reason)
	}
	if !strings.Contains(o.err.Error(), reason) {
		t.Errorf("error %q, want one with %q", o.err, reason)
	}
}

// Values gives what the event led to, for what Then can't state.
func (o *Outcome) Values() []project.Value { return o.values }

// onceEach runs the view over a bucket, in two goes and a third over all that stands, and checks that the bucket has each
// value once.
func (o *Outcome) onceEach() {
	t := o.scenario.t
	t.Helper()
	want := append(append([]project.Value(nil), o.before...), o.values...)
	bucket := &Bucket{}
	for range 2 {
		Run(t, project.Config{
			Store: o.store, Registry: o.scenario.registry,
			Views: []project.ViewSpec{{New: o.scenario.newView, Bucket: bucket}},
		}, uint64(len(o.events)))
		var have []project.Value
		for e, err := range bucket.All(context.WithoutCancel(t.Context()), 0) {
			if err != nil {
				t.Fatal(err)
			}
			have = append(have, project.Value{Key: e.Key, Data: e.Value})
		}
		if diff := cmp.Diff(readable(want), readable(have)); diff != "" {
			t.Errorf("the bucket does not have each value once (-want +have):\n%s", diff)
		}
		bucket.Truncate(uint64(len(want)) / 2)
	}
}

// runTimeout bounds a run over events in memory; it takes milliseconds.
const runTimeout = 30 * time.Second

// Run runs a projector until all its views have passed an event, and ends it.
func Run(t testing.TB, cfg project.Config, event uint64) {
	t.Helper()
	runner, err := project.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), runTimeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	if _, err := runner.Wait(ctx, event); err != nil {
		t.Errorf("waiting for event %d: %v", event, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the projector ended: %v", err)
	}
}

func reads(view project.Selective, aggregate string) bool {
	for _, a := range view.Aggregates() {
		if a == aggregate {
			return true
		}
	}
	return false
}

// newest gives the newest value of each key, in the order these were given.
func newest(values []project.Value) []project.Value {
	last := map[string]int{}
	for i, v := range values {
		last[v.Key] = i
	}
	var out []project.Value
	for i, v := range values {
		if last[v.Key] == i {
			out = append(out, project.Value{Key: v.Key, Data: bytes.Clone(v.Data)})
		}
	}
	return out
}

type text struct{ Key, Data string }

func readable(values []project.Value) []text {
	out := []text{}
	for _, v := range values {
		out = append(out, text{Key: v.Key, Data: string(v.Data)})
	}
	return out
}
