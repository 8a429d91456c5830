package dispatch_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/memstore"
)

// swapped is a store in whose place another can be put.
type swapped struct {
	es.Store // the rest, which a writer does not need
	now      atomic.Pointer[memstore.Store]
}

func (s *swapped) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	return s.now.Load().Append(ctx, after, batch)
}

func (s *swapped) Tail(ctx context.Context) (uint64, error) { return s.now.Load().Tail(ctx) }

func (s *swapped) Get(ctx context.Context, sequence uint64) (es.Message, error) {
	return s.now.Load().Get(ctx, sequence)
}

func (s *swapped) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return s.now.Load().Read(ctx, after)
}

// A stream that is put back to an older state under a writer at work ends the writer, whether the next command leaves events or
// not, and without any when it is made to look: it would wait for ever for its append to be settled. The next writer is told by the snapshot of what this one has seen.
func TestWriterEndsWhenEventsAreLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		next *pay // nil for a writer that is only made to look
	}{
		{"a command with events", &pay{Account: "shop", Amount: 1}},
		{"a command without events", &pay{Account: "shop"}},
		{"no command", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := &swapped{}
			store.now.Store(memory(t))
			config := dispatch.Config{
				Store: store, Registry: ledgerRegistry(), NewModel: newLedger, Start: begin{}, Now: time.Now, NewID: newID, Patience: time.Second,
				Snapshots: newKept(),
			}
			w, err := dispatch.NewWriter(config)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- w.Run(t.Context()) }()
			b := &bench{t: t, writer: w}
			yesterday := memory(t)
			for i := range 5 {
				if a := b.send(command(pay{Account: "shop", Amount: 1})); a.Status != es.StatusAccepted {
					t.Fatalf("got %+v", a)
				}
				if i == 2 {
					copyStore(t, yesterday, store.now.Load())
				}
			}
			store.now.Store(yesterday)
			answer := make(chan es.Answer, 1)
			if c.next != nil {
				w.Submit(command(*c.next), func(a es.Answer) { answer <- a })
			} else {
				w.Doubt()
				answer <- es.Answer{Status: es.StatusBusy} // nobody waits for one
			}
			select {
			case err := <-ended:
				if !errors.Is(err, dispatch.ErrEventsLost) {
					t.Errorf("the writer ended with %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the writer goes on")
			}
			if a := <-answer; a.Status != es.StatusUnknown && a.Status != es.StatusBusy {
				t.Errorf("got %+v", a)
			}
			if w, err = dispatch.NewWriter(config); err != nil {
				t.Fatal(err)
			}
			bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := w.Run(bounded); !errors.Is(err, dispatch.ErrEventsLost) {
				t.Errorf("the next writer ended with %v", err)
			}
			if n := len(history(t, yesterday)); n != 4 {
				t.Errorf("%d events stand, want the 4 that were left", n)
			}
		})
	}
}

// copyStore puts into a store what stands in another.
func copyStore(t *testing.T, to, from *memstore.Store) {
	t.Helper()
	var head es.Head
	for m, err := range from.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if err := es.Wait(t.Context(), to.Append(t.Context(), head, []es.Message{m})); err != nil {
			t.Fatal(err)
		}
		if head, err = head.Verify(m); err != nil {
			t.Fatal(err)
		}
	}
}
