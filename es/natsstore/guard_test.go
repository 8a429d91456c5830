package natsstore_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
)

// raw reads a message with the server's headers.
func raw(t *testing.T, nc *nats.Conn, sequence uint64) *jetstream.RawStreamMsg {
	t.Helper()
	m, err := stream(t, nc).GetMsg(t.Context(), sequence)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRivalInTheGapOnTheWire holds a pipeline back on its way while a rival appends just as much as the pipeline's first
// append. The second one then finds the sequence it expects, on top of the rival's event: nothing of the pipeline may be
// stored.
func TestRivalInTheGapOnTheWire(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{false, true} {
		for _, stand := range []int{0, 5} {
			t.Run(fmt.Sprintf("synced %v, after %d", synced, stand), func(t *testing.T) {
				t.Parallel()
				bus := estest.Server(t, synced)
				gate := &estest.Gate{}
				s := open(t, bus.Connect(t, gate.Through()), estest.Limits{}, natsstore.Config{})
				other, err := natsstore.Open(t.Context(), bus.Connect(t), natsstore.Config{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(other.Close)
				chain := estest.Chain{Label: "a"}
				chain.Append(t, s, stand)
				rival := estest.Chain{Label: "b", Head: chain.Head}
				gate.Shut()
				var pipeline []es.Pending
				for range 50 {
					pipeline = append(pipeline, chain.Hand(t.Context(), s, 1))
				}
				rival.Append(t, other, 1)
				if err := gate.Open(); err != nil {
					t.Fatal(err)
				}
				for i, p := range pipeline {
					if err := es.Wait(deadline(t), p); !errors.Is(err, es.ErrConflict) {
						t.Errorf("append %d: %v", i, err)
					}
				}
				wantChain(t, other, rival.Head.Sequence)
				// The loser goes on from what stands, and the pipeline is exact again.
				rival.Append(t, s, 100)
				wantChain(t, s, rival.Head.Sequence)
			})
		}
	}
}

// TestStoresRace lets two stores pipeline over the same places: whatever the server makes of it, one chain stands.
func TestStoresRace(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	first := open(t, bus.Connect(t), estest.Limits{}, natsstore.Config{})
	second, err := natsstore.Open(t.Context(), bus.Connect(t), natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	ctx := deadline(t)
	var wg sync.WaitGroup
	for label, s := range map[string]es.Store{"a": first, "b": second} {
		wg.Go(func() {
			chain := estest.Chain{Label: label}
			for range 60 {
				var pending []es.Pending
				for size := range 20 {
					pending = append(pending, chain.Hand(ctx, s, 1+size/18))
				}
				stored := true
				for _, p := range pending {
					err := es.Wait(ctx, p)
					if err == nil && !stored {
						t.Error("an append was stored after one that was not")
					}
					if stored = err == nil; err != nil && !errors.Is(err, es.ErrConflict) {
						t.Error(err)
					}
				}
				var head es.Head
				for _, err := range es.VerifyChain(&head, s.Read(ctx, 0)) {
					if err != nil {
						t.Error(err)
						return
					}
				}
				chain.Head = head
			}
		})
	}
	wg.Wait()
}

// The id of the last message outlives a restart of the server, and so does the exact guard.
func TestGuardAfterRestart(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	for _, size := range []int{1, 3} {
		if err := es.Wait(deadline(t), chain.Hand(t.Context(), s, size)); err != nil {
			t.Fatal(err)
		}
		last := chain.Head
		stopAndNotice(t, bus, nc)
		bus.Start(t)
		chain.Append(t, s, 1)
		if got := raw(t, nc, last.Sequence+1).Header.Get("Nats-Expected-Last-Msg-Id"); got != last.Hash.String()[:16] {
			t.Errorf("after the restart event %d was guarded by the id %q, not that of event %d", last.Sequence+1, got, last.Sequence)
		}
	}
	wantChain(t, s, 6)
}

// A stream whose last message has no id, as one with replicas has it, goes on with the sequence as guard once that message
// is known to stand.
func TestGuardAfterMessageWithoutID(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	m := chain.Next(1)[0]
	if _, err := js(t, nc).PublishMsg(t.Context(), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Body}); err != nil {
		t.Fatal(err)
	}
	foreign := estest.Chain{Label: "b", Head: es.Head{Sequence: 1, Hash: es.Hash{1}}}
	if err := es.Wait(deadline(t), foreign.Hand(t.Context(), s, 1)); !errors.Is(err, es.ErrConflict) {
		t.Errorf("on another event: %v", err)
	}
	chain.Append(t, s, 3)
	for sequence := uint64(2); sequence <= 4; sequence++ {
		m := raw(t, nc, sequence)
		if m.Header.Get("Nats-Msg-Id") == "" {
			t.Errorf("event %d has no id", sequence)
		}
		if guarded := m.Header.Get("Nats-Expected-Last-Msg-Id") != ""; guarded != (sequence > 2) {
			t.Errorf("event %d is guarded by an id: %v", sequence, guarded)
		}
	}
	wantChain(t, s, 4)
}

// A server that lost its last events, and stores others in their place, is noticed: what was acknowledged before it went
// away is not taken for granted.
func TestGuardAfterLoss(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2} {
		t.Run(fmt.Sprintf("append of %d", size), func(t *testing.T) {
			t.Parallel()
			bus := estest.Server(t, false)
			nc, there := bus.Connect(t), bus.Connect(t)
			s := open(t, nc, estest.Limits{}, natsstore.Config{})
			chain, others := estest.Chain{Label: "a"}, estest.Chain{Label: "b"}
			chain.Append(t, s, 4)
			stopAndNotice(t, bus, nc)
			bus.Start(t)
			if err := js(t, there).DeleteStream(deadline(t), stream(t, there).CachedInfo().Config.Name); err != nil {
				t.Fatal(err)
			}
			others.Append(t, open(t, there, estest.Limits{}, natsstore.Config{}), 4)
			if err := es.Wait(deadline(t), chain.Hand(t.Context(), s, size)); !errors.Is(err, es.ErrConflict) {
				t.Errorf("append on an event that was lost: %v", err)
			}
			wantChain(t, s, 4)
		})
	}
}

// A message that is sent again while the server remembers it is stored once, and a batch too.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 3} {
		s := open(t, estest.Server(t, false).Connect(t), estest.Limits{}, natsstore.Config{})
		chain := estest.Chain{Label: "a"}
		chain.Append(t, s, 2)
		after := chain.Head
		batch := chain.Next(size)
		for i := range 3 {
			err := es.Wait(deadline(t), s.Append(t.Context(), after, batch))
			if (err == nil) != (i == 0) || err != nil && !errors.IsAny(err, es.ErrConflict, es.ErrUnclear) {
				t.Errorf("try %d of %d messages: %v", i, size, err)
			}
			if err := es.Settle(deadline(t), s, after, batch); err != nil {
				t.Errorf("try %d of %d messages was settled with %v", i, size, err)
			}
		}
		wantChain(t, s, chain.Head.Sequence)
	}
}
