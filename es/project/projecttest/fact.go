package projecttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"catenary/es"
	"catenary/es/memstore"
)

// Fact is an event as a test states it: what was recorded about which instance.
type Fact struct {
	Ref  es.Ref
	Data any
	// Effective is when the fact became true. Zero means when it was recorded (see [Recorded]).
	Effective time.Time
	// Backfill is set when the fact only adds to history.
	Backfill bool
	// Actor and OnBehalfOf are opaque ids.
	Actor, OnBehalfOf string
}

// Recorded is when the n-th event of a scenario is recorded: n minutes after 2026-01-01T00:00:00Z.
func Recorded(n uint64) time.Time {
	return time.Date(2026, 1, 1, 0, int(n), 0, 0, time.UTC)
}

// EventID is the id of the n-th event of a scenario.
func EventID(n uint64) string { return fmt.Sprintf("event-%d", n) }

// Append stores facts in a store, which holds facts stored by Append alone, as the events that come next in it. It gives
// the last sequence.
func Append(t testing.TB, registry *es.Registry, store es.Store, facts ...Fact) uint64 {
	t.Helper()
	ctx := t.Context()
	head := headOf(t, store)
	versions := map[es.Ref]uint64{}
	for m, err := range store.Read(ctx, 0) {
		if err != nil {
			t.Fatalf("read the store: %v", err)
		}
		ref, err := es.ParseSubject(m.Subject)
		if err != nil {
			t.Fatal(err)
		}
		versions[ref]++
	}
	for len(facts) > 0 {
		part := facts[:min(len(facts), es.MaxAppendMessages)]
		facts = facts[len(part):]
		after := head
		batch := make([]es.Message, len(part))
		for i, f := range part {
			versions[f.Ref]++
			batch[i] = message(t, registry, f, head.Sequence+1, versions[f.Ref])
			head = head.Seal(&batch[i])
		}
		if err := es.Wait(ctx, store.Append(ctx, after, batch)); err != nil {
			t.Fatalf("append events %d to %d: %v", after.Sequence+1, head.Sequence, err)
		}
	}
	return head.Sequence
}

func headOf(t testing.TB, store es.Store) es.Head {
	t.Helper()
	tail, err := store.Tail(t.Context())
	if err != nil {
		t.Fatalf("tail of the store: %v", err)
	}
	if tail == 0 {
		return es.Head{}
	}
	m, err := store.Get(t.Context(), tail)
	if err != nil {
		t.Fatalf("event %d: %v", tail, err)
	}
	e, err := es.ReadEvent(m)
	if err != nil {
		t.Fatal(err)
	}
	return es.Head{Sequence: tail, Hash: e.Hash}
}

func message(t testing.TB, registry *es.Registry, f Fact, sequence, version uint64) es.Message {
	t.Helper()
	name, body, err := registry.Encode(f.Data)
	if err != nil {
		t.Fatalf("fact %d about %s: %v", sequence, f.Ref, err)
	}
	e := es.Event{
		ID: EventID(sequence), Type: name, Ref: f.Ref, Version: version, Recorded: Recorded(sequence), Effective: f.Effective,
		Backfill: f.Backfill, Body: body,
		Command: es.Cause{ID: fmt.Sprintf("command-%d", sequence), Ref: f.Ref, Digest: es.Digest(body), Actor: f.Actor, OnBehalfOf: f.OnBehalfOf},
	}
	return e.Message(registry.Codec().ContentType())
}

// events gives facts as a view gets them: stored and read again.
func events(t testing.TB, registry *es.Registry, facts []Fact) (*memstore.Store, []es.Event) {
	t.Helper()
	store := memstore.New(memstore.Config{})
	Append(t, registry, store, facts...)
	var read []es.Event
	for m, err := range store.Read(context.WithoutCancel(t.Context()), 0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := registry.Decode(m)
		if err != nil {
			t.Fatalf("fact %d: %v", m.Sequence, err)
		}
		read = append(read, e)
	}
	return store, read
}
