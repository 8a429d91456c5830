package natsstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// deadline bounds every wait of a test. It is reached only when something is broken.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func wantChain(t *testing.T, s es.Store, tail uint64) {
	t.Helper()
	var head es.Head
	for _, err := range es.VerifyChain(&head, s.Read(deadline(t), 0)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if head.Sequence != tail {
		t.Fatalf("the chain holds up to %d, want %d", head.Sequence, tail)
	}
}

// stopAndNotice stops the server and waits until the client has noticed.
func stopAndNotice(t *testing.T, bus *estest.Bus, nc *nats.Conn) {
	t.Helper()
	status := nc.StatusChanged(nats.RECONNECTING)
	defer nc.RemoveStatusListener(status)
	bus.Stop()
	select {
	case <-status:
	case <-deadline(t).Done():
		t.Fatal("the client has not noticed that the server is gone")
	}
}

// The guard and the batch travel in headers of the server: they are stored with the message, and readers do not see them.
func TestServerHeadersAreTheServersOwn(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 1)
	after := chain.Head
	batch := chain.Next(3)
	batch[1].Header["Nats-Rollup"] = []string{"all"}
	if err := es.Wait(deadline(t), s.Append(t.Context(), after, batch)); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for sequence := uint64(1); sequence <= 4; sequence++ {
		raw, err := stream(t, nc).GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		if sequence <= 2 != (raw.Header.Get("Nats-Expected-Last-Sequence") == fmt.Sprint(sequence-1)) {
			t.Errorf("event %d is guarded by %q", sequence, raw.Header.Get("Nats-Expected-Last-Sequence"))
		}
		if raw.Header.Get("Nats-Rollup") != "" {
			t.Errorf("event %d carries a caller's header to the server", sequence)
		}
		if sequence > 1 {
			ids[raw.Header.Get("Nats-Batch-Id")] = true
		}
		m, err := s.Get(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		for name := range m.Header {
			if strings.HasPrefix(name, "Nats-") {
				t.Errorf("event %d is given with the header %s", sequence, name)
			}
		}
	}
	if len(ids) != 1 || ids[""] {
		t.Errorf("the batch ids are %v", ids)
	}
	if got := batch[1].Header["Nats-Rollup"]; len(got) != 1 {
		t.Error("the caller's header map was changed")
	}
	wantChain(t, s, 4)
}

// Case D12: refused with limit and size, nothing changed, and the connection lives.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 1)
	for _, size := range []int{topology.MaxEventBytes, 1 << 20, 1<<20 + 1, 5 << 20} {
		over := chain
		m := over.Sized(size)
		err := es.Wait(deadline(t), s.Append(t.Context(), chain.Head, []es.Message{m}))
		if !errors.Is(err, es.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(topology.MaxEventBytes)) || !strings.Contains(err.Error(), m.Subject) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	chain.Append(t, s, 1)
	wantChain(t, s, 2)
}

// A stream whose own limit is wider than the server's, and headers over the server's limit.
func TestLimitsOfTheServer(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{MessageBytes: 4 << 20}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	over := chain
	if err := es.Wait(deadline(t), s.Append(t.Context(), es.Head{}, []es.Message{over.Sized(1 << 20)})); !errors.Is(err, es.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(1<<20)) {
		t.Errorf("1 MiB: %v", err)
	}
	over = chain
	headers := over.Seal(&es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}, Type: "t", Command: es.Cause{ID: "c", Actor: strings.Repeat("x", 1<<16)}})
	if err := es.Wait(deadline(t), s.Append(t.Context(), es.Head{}, []es.Message{headers})); !errors.Is(err, es.ErrTooLarge) || !strings.Contains(err.Error(), "65535") {
		t.Errorf("large headers: %v", err)
	}
	if tail, err := s.Tail(t.Context()); err != nil || tail != 0 {
		t.Errorf("the tail is %d (%v)", tail, err)
	}
}

// What can't be answered keeps its place in the window; past the window an append waits, and no longer than its context.
func TestWindowBoundsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	const window = 20
	s := open(t, nc, estest.Limits{}, natsstore.Config{MaxInFlight: window})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 1)
	stopAndNotice(t, bus, nc)
	var pending []es.Pending
	for {
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		next := chain
		p := next.Hand(short, s, 1)
		if err := p.Err(); errors.Is(err, es.ErrUnavailable) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an append past the window came to %v", err)
			}
			break
		}
		chain = next
		if pending = append(pending, p); len(pending) > 10*window {
			t.Fatal("appends to a server that is gone are answered")
		}
	}
	waiting := 0
	for _, p := range pending {
		if p.Err() == nil {
			waiting++
		}
	}
	if waiting != window {
		t.Errorf("%d appends are in flight, want %d", waiting, window)
	}
	bus.Start(t)
	for i, p := range pending {
		if err := es.Wait(deadline(t), p); err != nil && !errors.Is(err, es.ErrUnclear) {
			t.Errorf("append %d: %v", i, err)
		}
	}
	chain.Append(t, s, 1)
	wantChain(t, s, chain.Head.Sequence)
}

// A batch larger than the window, in messages and in bytes, goes alone.
func TestBatchLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	s := open(t, estest.Server(t, false).Connect(t), estest.Limits{}, natsstore.Config{MaxInFlight: 10, MaxInFlightBytes: 1000})
	chain := estest.Chain{Label: "a"}
	var pending []es.Pending
	for range 5 {
		for _, size := range []int{100, 1} {
			pending = append(pending, chain.Hand(t.Context(), s, size))
		}
	}
	for _, p := range pending {
		if err := es.Wait(deadline(t), p); err != nil {
			t.Fatal(err)
		}
	}
	wantChain(t, s, 505)
}

// What is in flight when the connection is closed for good is unclear at once, not after a timeout; what comes later was
// never sent.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	for name, closeIt := range map[string]func(*natsstore.Store, *nats.Conn){
		"connection": func(_ *natsstore.Store, nc *nats.Conn) { nc.Close() },
		"store":      func(s *natsstore.Store, _ *nats.Conn) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bus := estest.Server(t, false)
			nc := bus.Connect(t)
			s := open(t, nc, estest.Limits{}, natsstore.Config{AckTimeout: time.Hour})
			chain := estest.Chain{Label: "a"}
			stopAndNotice(t, bus, nc)
			first, second := chain.Hand(t.Context(), s, 1), chain.Hand(t.Context(), s, 1)
			closeIt(s, nc)
			for _, p := range []es.Pending{first, second} {
				if err := es.Wait(deadline(t), p); !errors.Is(err, es.ErrUnclear) {
					t.Errorf("in flight: %v", err)
				}
			}
			for _, size := range []int{1, 3} {
				if err := es.Wait(deadline(t), (&estest.Chain{Label: "late"}).Hand(t.Context(), s, size)); !errors.Is(err, es.ErrUnavailable) {
					t.Errorf("after the end: %v", err)
				}
			}
		})
	}
}

func TestAppendWithoutAnswerIsUnclear(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{AckTimeout: 20 * time.Millisecond})
	stopAndNotice(t, bus, nc)
	chain := estest.Chain{Label: "a"}
	if err := es.Wait(deadline(t), chain.Hand(t.Context(), s, 2)); !errors.Is(err, es.ErrUnclear) {
		t.Errorf("outcome %v", err)
	}
}

// TestAppendsSurviveRestarts stops and starts the server while a writer appends, one append in flight, and settles what is
// unclear: nothing is lost, nothing stands twice.
func TestAppendsSurviveRestarts(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{AckTimeout: 300 * time.Millisecond, RequestTimeout: time.Second})
	chain := estest.Chain{Label: "a"}
	const appends, restarts = 300, 3
	stored := make(chan uint64, appends)
	failed := make(chan error, 1)
	ctx := deadline(t)
	go func() {
		defer close(stored)
		for i := range appends {
			after := chain.Head
			batch := chain.Next(1 + i%3)
			err := es.Wait(ctx, s.Append(ctx, after, batch))
			if err != nil {
				err = es.Settle(ctx, s, after, batch)
			}
			if err != nil {
				failed <- errors.Wrapf(err, "append %d", i)
				return
			}
			stored <- chain.Head.Sequence
		}
	}()
	n := 0
	for range stored {
		if n++; n%(appends/(restarts+1)) == 0 && n < appends {
			bus.Stop()
			bus.Start(t)
		}
	}
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	wantChain(t, s, chain.Head.Sequence)
}
