package dispatch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"

	"catenary/es/estest"
)

// What is wrong in the stream is found where it stands, however many check at once, and nothing is appended then.
func TestStartFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	const events = 1000 // several stretches
	store := memory(t)
	b := start(t, store)
	for range events - 1 {
		b.submit(command(pay{Account: "shop", Amount: 1}))
	}
	b.send(command(pay{Account: "shop", Amount: 1}))
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(es.Message) (es.Message, bool)
		is     error
	}{
		{"a changed body", func(m es.Message) (es.Message, bool) { m.Body = append(m.Body, 0xC0); return m, true }, es.ErrBrokenChain},
		{"a changed hash", func(m es.Message) (es.Message, bool) {
			m.Header[es.HeaderHash] = []string{strings.Repeat("0", 64)}
			return m, true
		}, es.ErrBrokenChain},
		{"no hash", func(m es.Message) (es.Message, bool) { delete(m.Header, es.HeaderHash); return m, true }, es.ErrBrokenChain},
		{"a hole", func(m es.Message) (es.Message, bool) { return m, false }, es.ErrBrokenChain},
	}
	for _, tt := range tests {
		for _, at := range []uint64{1, 2, 256, 257, 600, events} {
			t.Run(fmt.Sprint(tt.name, " at ", at), func(t *testing.T) {
				t.Parallel()
				err := startAlone(t, estest.Tamper(store, func(m es.Message) (es.Message, bool) {
					if m.Sequence == at {
						return tt.change(m)
					}
					return m, true
				}))
				if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), fmt.Sprint("event ", at, " ")) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
	if tail, err := store.Tail(t.Context()); err != nil || tail != events+1 {
		t.Errorf("somebody appended: the stream ends at event %d, %v", tail, err)
	}
}

// From a base on the chain is checked against the base's hash.
func TestChainIsCheckedFromTheBaseOn(t *testing.T) {
	t.Parallel()
	store, k := memory(t), newKept()
	b := start(t, store, keeping(k, 5))
	for range 5 {
		b.send(command(pay{Account: "shop", Amount: 1}))
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	base := <-k.saved
	b = start(t, store, keeping(k, 1<<20))
	b.send(command(pay{Account: "shop", Amount: 1}))
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	for at, broken := range map[uint64]bool{base - 1: false, base + 1: true, base + 2: true} {
		err := startAlone(t, estest.Tamper(store, func(m es.Message) (es.Message, bool) {
			if m.Sequence == at {
				m.Body = append(m.Body, 0xC0)
			}
			return m, true
		}), keeping(k, 1<<20))
		if errors.Is(err, es.ErrBrokenChain) != broken {
			t.Errorf("event %d changed, base at %d: got %v", at, base, err)
		}
	}
}

// An event of a newer program stops the writer, in the middle of a long stream too.
func TestStartStopsAtAnUnknownEvent(t *testing.T) {
	t.Parallel()
	store := memory(t)
	chain := &estest.Chain{Label: "x"}
	for i := range 700 {
		e := es.Event{Ref: account("shop"), Type: "account.moved.v1", Version: uint64(i + 1)}
		if _, body, err := ledgerRegistry().Encode(moved{1}); err != nil {
			t.Fatal(err)
		} else {
			e.Body = body
		}
		if i == 500 {
			e.Type = "account.frozen.v9"
		}
		after := chain.Head
		if err := es.Wait(t.Context(), store.Append(t.Context(), after, []es.Message{chain.Seal(&e)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := startAlone(t, store); !errors.Is(err, es.ErrUnknownType) || !strings.Contains(err.Error(), "event 501 ") {
		t.Errorf("got %v", err)
	}
}
