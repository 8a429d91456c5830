package natsstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
)

// following is one that follows the stream and checks the chain.
type following struct {
	mu     sync.Mutex
	head   es.Head
	err    error
	moved  chan struct{} // says that there is more
	hold   chan struct{} // nil: takes at once; else one message for each value
	ended  chan struct{}
	cancel context.CancelFunc
}

func follow(t *testing.T, s *natsstore.Store, after es.Head, hold chan struct{}) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	f := &following{head: after, moved: make(chan struct{}, 1), hold: hold, ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(f.ended)
		head := after
		for _, err := range es.VerifyChain(&head, s.Follow(ctx, after.Sequence)) {
			f.mu.Lock()
			f.head, f.err = head, err
			f.mu.Unlock()
			select {
			case f.moved <- struct{}{}:
			default:
			}
			if f.hold == nil {
				continue
			}
			select {
			case <-f.hold:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(f.stop)
	return f
}

func (f *following) stop() {
	f.cancel()
	<-f.ended
}

// until waits until the follower has come to a head, over a chain without a gap.
func (f *following) until(t *testing.T, want es.Head) {
	t.Helper()
	over := time.NewTimer(time.Minute)
	defer over.Stop()
	for {
		f.mu.Lock()
		head, err := f.head, f.err
		f.mu.Unlock()
		if err != nil {
			t.Fatalf("after event %d: %v", head.Sequence, err)
		}
		if head == want {
			return
		}
		select {
		case <-f.moved:
		case <-over.C:
			t.Fatalf("the follower came to event %d of %d", head.Sequence, want.Sequence)
		}
	}
}

// All who follow the end of the stream get every event once and in order, from one consumer; one that takes nothing holds up nobody and
// gets all of it in the end.
func TestFollowersShareOneConsumer(t *testing.T) {
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 100)
	before := goleak.IgnoreCurrent()
	held := make(chan struct{})
	all := []*following{follow(t, s, es.Head{}, nil), follow(t, s, es.Head{}, nil), follow(t, s, es.Head{}, nil), follow(t, s, es.Head{}, held)}
	quick := all[:3]
	// Each comes to the relay when it has nothing at hand; until then it has a consumer of its own.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for shared, deadline := false, time.Now().Add(time.Minute); !shared; <-tick.C {
		chain.Append(t, s, 1)
		for _, f := range quick {
			f.until(t, chain.Head)
		}
		info, err := stream(t, nc).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shared = info.State.Consumers == 2 // the relay's, and that of the one which takes nothing
		if time.Now().After(deadline) {
			t.Fatalf("%d consumers are left for three followers and one that takes nothing", info.State.Consumers)
		}
	}
	chain.Append(t, s, 5000)
	for _, f := range quick {
		f.until(t, chain.Head)
	}
	// One that begins near the end needs no consumer.
	late := follow(t, s, chain.Head, nil)
	chain.Append(t, s, 10)
	late.until(t, chain.Head)
	close(held)
	all[3].until(t, chain.Head)
	for range 3 {
		chain.Append(t, s, 1)
		for _, f := range append(all, late) {
			f.until(t, chain.Head)
		}
	}
	for _, f := range append(all, late) {
		f.stop()
	}
	wantConsumers(t, nc, 0)
	goleak.VerifyNone(t, before)
}

// One that is slower than the others loses its place, and comes back to it without having missed anything.
func TestSlowFollowerComesBack(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 1)
	hold := make(chan struct{}, 1<<16)
	quick, slow := follow(t, s, es.Head{}, nil), follow(t, s, es.Head{}, hold)
	for range 20 {
		hold <- struct{}{}
		quick.until(t, chain.Head)
		slow.until(t, chain.Head)
		chain.Append(t, s, 1)
	}
	for range 3 {
		chain.Append(t, s, 3000) // more than a place holds
		quick.until(t, chain.Head)
		for range 3001 {
			hold <- struct{}{}
		}
		slow.until(t, chain.Head)
	}
}

// A server that goes away and comes back is survived by all.
func TestFollowersSurviveARestart(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	a, b := follow(t, s, es.Head{}, nil), follow(t, s, es.Head{}, nil)
	for range 3 {
		for range 20 {
			chain.Append(t, s, 1)
			a.until(t, chain.Head)
			b.until(t, chain.Head)
		}
		stopAndNotice(t, bus, nc)
		bus.Start(t)
		settled(t, s)
	}
	chain.Append(t, s, 1)
	a.until(t, chain.Head)
	b.until(t, chain.Head)
}

// settled waits until the store can be asked again.
func settled(t *testing.T, s *natsstore.Store) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := s.Tail(ctx); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the server did not come back")
		}
	}
}
