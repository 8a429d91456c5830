package natsstore_test

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
)

func wantConsumers(t *testing.T, nc *nats.Conn, want int) {
	t.Helper()
	info, err := stream(t, nc).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Consumers != want {
		t.Errorf("the stream has %d consumers, want %d", info.State.Consumers, want)
	}
}

// Neither a goroutine nor a consumer is left of a read, however it ends.
func TestReadsLeaveNothing(t *testing.T) {
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 5000)
	ref := es.Ref{Aggregate: "node", Key: "n1"}
	for range s.Read(t.Context(), 4999) { // whatever starts once and stays has started
	}
	before := goleak.IgnoreCurrent()
	for name, read := range map[string]func(){
		"to the end": func() {
			for range s.Read(t.Context(), 0) {
			}
			for range s.ReadAggregate(t.Context(), ref) {
			}
		},
		"left early": func() {
			for range s.Read(t.Context(), 0) {
				break
			}
			for range s.ReadAggregate(t.Context(), ref) {
				break
			}
			for range s.Follow(t.Context(), 0) {
				break
			}
		},
		"canceled": func() {
			for _, messages := range []func(context.Context, uint64) iter.Seq2[es.Message, error]{s.Read, s.Follow} {
				ctx, cancel := context.WithCancel(t.Context())
				for range messages(ctx, 0) {
					cancel()
				}
				cancel()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			read()
			wantConsumers(t, nc, 0)
			goleak.VerifyNone(t, before, goleak.IgnoreCurrent())
		})
	}
	goleak.VerifyNone(t, before)
}

// Large events do not pile up faster than they are taken: the server would drop the connection.
func TestReadOfLargeEvents(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	const events = 400 // 80 MB, more than the server lets pile up for one client
	for range events {
		after := chain.Head
		m := chain.Sized(200 << 10)
		if err := es.Wait(deadline(t), s.Append(t.Context(), after, []es.Message{m})); err != nil {
			t.Fatal(err)
		}
	}
	wantChain(t, s, events)
	if n := nc.Stats().Reconnects; n != 0 {
		t.Errorf("the server dropped the connection %d times", n)
	}
}

// Gaps of the stream itself are passed on: the check of the chain finds them.
func TestGapsAreNotHidden(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 20)
	// What an operator can do to a stream that denies deletion: events 1 to 17 are gone, but for none of them.
	changeStream(t, nc, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 })
	var got []uint64
	for m, err := range s.Read(deadline(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Sequence)
	}
	if len(got) != 3 || got[0] != 18 || got[2] != 20 {
		t.Fatalf("read %v", got)
	}
	if _, err := s.Get(t.Context(), 5); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("get of a lost event: %v", err)
	}
	var head es.Head
	var found error
	for _, err := range es.VerifyChain(&head, s.Read(deadline(t), 0)) {
		found = err
	}
	if !errors.Is(found, es.ErrBrokenChain) {
		t.Errorf("the check of the chain gave %v", found)
	}
}

// A stream that says it goes further than it does is not waited for without end.
func TestReadDoesNotWaitForWhatIsLost(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{ReadTimeout: 100 * time.Millisecond})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 5)
	changeStream(t, nc, func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = time.Second, time.Second })
	ctx := deadline(t)
	for {
		info, err := stream(t, nc).Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs == 0 && info.State.LastSeq == 5 {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the events did not expire")
		}
	}
	var found error
	for _, err := range s.Read(ctx, 0) {
		found = err
	}
	if !errors.Is(found, es.ErrUnavailable) {
		t.Errorf("the read gave %v", found)
	}
}

// TestFollowSurvivesRestarts follows while the server is stopped and started, and sees every event once, in order.
// A question that is out when the server goes is asked again: nobody waits for an answer that went with the connection.
func TestQuestionsSurviveRestarts(t *testing.T) {
	bus := estest.Server(t, false)
	s := open(t, bus.Connect(t), estest.Limits{}, natsstore.Config{RequestTimeout: time.Hour})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asking sync.WaitGroup
	var answered atomic.Int64
	for range 64 {
		asking.Go(func() {
			for ctx.Err() == nil {
				if tail, err := s.Tail(t.Context()); err != nil || tail != 3 {
					t.Errorf("tail %d, error %v", tail, err)
					return
				}
				if _, err := s.Get(t.Context(), 2); err != nil {
					t.Errorf("get: %v", err)
					return
				}
				answered.Add(1)
			}
		})
	}
	answers := func(n int64) {
		t.Helper()
		for n += answered.Load(); answered.Load() < n && !t.Failed(); {
			runtime.Gosched()
		}
	}
	for range 3 {
		answers(200)
		bus.Stop()
		bus.Start(t)
		answers(200)
	}
	stop()
	done := make(chan struct{})
	go func() { asking.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a question waits for an answer that never comes")
	}
}

func TestFollowSurvivesRestarts(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	reading, writing := bus.Connect(t), bus.Connect(t)
	w := open(t, writing, estest.Limits{}, natsstore.Config{})
	s := open(t, reading, estest.Limits{}, natsstore.Config{RequestTimeout: time.Second})
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	seen := make(chan uint64, 100_000)
	ended := make(chan error, 1)
	go func() {
		var head es.Head
		for m, err := range es.VerifyChain(&head, s.Follow(ctx, 0)) {
			if err != nil {
				ended <- err
				return
			}
			seen <- m.Sequence
		}
		ended <- nil
	}()
	chain := estest.Chain{Label: "a"}
	next := uint64(1)
	for range 4 {
		chain.Append(t, w, 500)
		for next <= chain.Head.Sequence {
			select {
			case got := <-seen:
				if got != next {
					t.Fatalf("event %d came where %d was due", got, next)
				}
				next++
			case err := <-ended:
				t.Fatalf("the follower ended at %d: %v", next, err)
			case <-ctx.Done():
				t.Fatalf("the follower did not see event %d", next)
			}
		}
		stopAndNotice(t, bus, writing)
		bus.Start(t)
		waitConnected(t, writing)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the follower ended with %v", err)
	}
	waitConnected(t, reading)
}

func waitConnected(t *testing.T, nc *nats.Conn) {
	t.Helper()
	status := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(status)
	if nc.IsConnected() {
		return
	}
	select {
	case <-status:
	case <-deadline(t).Done():
		t.Fatal("the client has not come back")
	}
}

// A follower whose consumer is deleted behind its back goes on with another.
func TestFollowSurvivesTheLossOfItsConsumer(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 10)
	next := uint64(1)
	for m, err := range s.Follow(deadline(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Sequence != next {
			t.Fatalf("event %d came where %d was due", m.Sequence, next)
		}
		if next == 30 {
			break
		}
		if next++; next == 8 || next == 11 || next == 21 {
			for name := range stream(t, nc).ConsumerNames(t.Context()).Name() {
				if err := js(t, nc).DeleteConsumer(t.Context(), "CATENARY", name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if next == 11 || next == 21 {
			chain.Append(t, s, 10)
		}
	}
	wantConsumers(t, nc, 0)
}

func TestReadsEndWithTheConnection(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 3)
	var found error
	for m, err := range s.Follow(deadline(t), 0) {
		if found = err; m.Sequence == 3 {
			go nc.Close()
		}
	}
	if !errors.Is(found, es.ErrUnavailable) {
		t.Errorf("the follower ended with %v", found)
	}
	if _, err := s.Tail(t.Context()); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("tail: %v", err)
	}
	for _, err := range s.Read(t.Context(), 0) {
		if !errors.Is(err, es.ErrUnavailable) {
			t.Errorf("read: %v", err)
		}
	}
}

// A follower that is told to end while the server is away ends at once.
func TestFollowEndsWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{RequestTimeout: time.Minute})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		for _, err := range s.Follow(ctx, 0) {
			if err != nil {
				ended <- err
				return
			}
			close(started)
		}
		ended <- nil
	}()
	<-started
	stopAndNotice(t, bus, nc)
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the follower ended with %v", err)
		}
	case <-deadline(t).Done():
		t.Error("the follower did not end")
	}
}
