package rollout

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/memstore"
	"catenary/events"
)

// ledger is a stream to which a test appends facts, and a bus that grants the lease and shows what else is asked for.
type ledger struct {
	*memstore.Store
	registry *es.Registry
	now      time.Time
	asked    chan dispatch.Request

	mu   sync.Mutex
	head es.Head
	// versions counts the events of each instance.
	versions map[es.Ref]uint64
}

func (l *ledger) record(ctx context.Context, ref es.Ref, fact any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, body, err := l.registry.Encode(fact)
	if err != nil {
		return err
	}
	l.versions[ref]++
	e := es.Event{
		ID: fmt.Sprint(l.head.Sequence + 1), Type: name, Ref: ref, Version: l.versions[ref], Recorded: l.now, Effective: l.now, Body: body,
		Command: es.Cause{ID: fmt.Sprint(l.head.Sequence + 1), Ref: ref, Actor: "ann"},
	}
	m := e.Message(l.registry.Codec().ContentType())
	before := l.head
	l.head = l.head.Seal(&m)
	return es.Wait(ctx, l.Append(ctx, before, []es.Message{m}))
}

// ReadKinds gives all kinds: what is of none of those that are asked for is no concern of the engine's either.
func (l *ledger) ReadKinds(ctx context.Context, after, last uint64, _ ...string) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		for m, err := range l.Read(ctx, after) {
			if err == nil && m.Sequence > last || !yield(m, err) {
				return
			}
		}
	}
}

// Send grants the lease, and leaves everything else without an answer.
func (l *ledger) Send(ctx context.Context, r dispatch.Request) (es.Answer, error) {
	if r.Aggregate == events.AggregateLease {
		err := l.record(ctx, commands.LeaseRef(commands.EngineLease), events.LeaseTaken{Name: commands.EngineLease, Holder: "e", TTL: "1h"})
		return es.Answer{Status: es.StatusAccepted}, err
	}
	select {
	case l.asked <- r:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return es.Answer{}, dispatch.ErrTimeout
}

// TestCommandsHaveATerm demands that what an engine asks for can't be done any more when it asks again: it may have asked for something else by
// then.
func TestCommandsHaveATerm(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := &ledger{
		Store: memstore.New(memstore.Config{}), registry: events.Registry(), now: time.Now().UTC().Truncate(time.Microsecond), asked: make(chan dispatch.Request, 1), versions: map[es.Ref]uint64{},
	}
	defer l.Close()
	place := events.StepName{Node: "n1", Module: "web"}
	is := func(version string) events.Version {
		return events.Version{Reference: events.Reference{Package: &events.Package{Name: "web", Version: version}}}
	}
	from, to := is("1"), is("2")
	raw, digest, err := events.Strategy{Tiers: []events.Tier{{Name: "all"}}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	rollout := commands.RolloutRef("r")
	for _, f := range []struct {
		ref  es.Ref
		fact any
	}{
		{commands.NodeRef("n1"), events.NodeRegistered{Node: "n1", ManagedBy: events.ManagedByAgent}},
		{commands.AssignmentRef("n1", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n1", Module: "web", Reference: from.Reference}}},
		{rollout, events.RolloutPlanning{ID: "r", PlanHead: events.PlanHead{Strategy: raw, StrategyDigest: digest}}},
		{rollout, events.RolloutStepsPlanned{Part: 1, Steps: []events.PlannedStep{{Tier: "all", StepName: place, Before: &from, After: &to}}}},
		{rollout, events.RolloutPlanned{Count: 1}},
		{rollout, events.RolloutStarted{}},
		{rollout, events.RolloutTierEntered{Tier: "all"}},
	} {
		if err := l.record(ctx, f.ref, f.fact); err != nil {
			t.Fatal(err)
		}
	}
	e, err := New(Config{Stream: l, Registry: l.registry, Bus: l, Holder: "e", TTL: time.Hour, Now: func() time.Time { return l.now }})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	select {
	case r := <-l.asked:
		if r.Verb != "begin-step" || !r.Deadline.After(l.now) || !r.Deadline.Before(l.now.Add(commandPatience)) {
			t.Errorf("asked is %s with the deadline %v, want one between now (%v) and %v later", r.Verb, r.Deadline, l.now, commandPatience)
		}
	case err := <-ended:
		t.Fatalf("the engine has ended: %v", err)
	case <-ctx.Done():
		t.Fatal("nothing is asked for")
	}
	cancel()
	<-ended
}
