package es_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
)

// storedEvents are more than a stretch of events in a store.
func storedEvents(t *testing.T, n int) es.Store {
	t.Helper()
	store := memstore.New(memstore.Config{})
	chain := &estest.Chain{Label: "x"}
	for i := range n {
		after := chain.Head
		e := es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}, Type: "node.seen.v1", Version: uint64(i + 1)}
		if err := es.Wait(t.Context(), store.Append(t.Context(), after, []es.Message{chain.Seal(&e)})); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// However many go ahead, what is given is what one gives that verifies and decodes message by message, from any event on.
func TestAheadGivesWhatReadingGives(t *testing.T) {
	t.Parallel()
	const events = 700
	store, registry := storedEvents(t, events), es.NewRegistry(es.Msgpack{})
	for _, after := range []uint64{0, 1, 255, 256, 257, events - 1, events} {
		for _, workers := range []int{1, 3} {
			head, err := es.HeadAt(t.Context(), store, after)
			if err != nil {
				t.Fatal(err)
			}
			want := head
			next, stop := iter.Pull2(es.VerifyChain(&want, store.Read(t.Context(), after)))
			for v, err := range es.Ahead(t.Context(), registry, store, head, workers) {
				m, failure, ok := next()
				if err != nil || failure != nil || !ok {
					t.Fatalf("after %d, %d workers: %v, %v, %t", after, workers, err, failure, ok)
				}
				if v.Head != want || v.Event.Sequence != m.Sequence || v.Event.Hash != want.Hash || !errors.Is(v.Err, es.ErrUnknownType) {
					t.Fatalf("after %d, %d workers: event %d at %v, want %d at %v (%v)", after, workers, v.Event.Sequence, v.Head, m.Sequence, want, v.Err)
				}
			}
			if _, _, more := next(); more {
				t.Errorf("after %d, %d workers: it ended early", after, workers)
			}
			stop()
		}
	}
}

// Who stops early leaves no goroutine, and neither does an end of the context, which is told.
func TestAheadEnds(t *testing.T) {
	t.Parallel()
	store, registry := storedEvents(t, 1500), es.NewRegistry(es.Msgpack{})
	for range es.Ahead(t.Context(), registry, store, es.Head{}, 2) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, err := range es.Ahead(ctx, registry, store, es.Head{}, 2) {
		last = err
	}
	if !errors.Is(last, es.ErrUnavailable) {
		t.Errorf("the context has ended, and it gives %v", last)
	}
}

// A false head is found at the first event.
func TestAheadVerifies(t *testing.T) {
	t.Parallel()
	store, registry := storedEvents(t, 300), es.NewRegistry(es.Msgpack{})
	for v, err := range es.Ahead(t.Context(), registry, store, es.Head{Sequence: 5}, 2) {
		if !errors.Is(err, es.ErrBrokenChain) || !strings.Contains(err.Error(), "event 6 ") {
			t.Errorf("got event %d, %v", v.Event.Sequence, err)
		}
	}
}
