package dispatch_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/topology"
)

// More commands for one instance than a worker holds leave room for another's while the first of them stands still, and are done in
// order when it goes on.
func TestInboxLeavesRoomForOthers(t *testing.T) {
	const flood, round = 1200, 500
	const storing = 200 // at once: more than the service stores at once is refused as busy
	o := openOffice(t)
	o.ackIn = 5 * time.Second
	b := start(t, o.ledger)
	release := make(chan struct{})
	p, stored := o.pipe(), make(chan error, flood)
	var sent []dispatch.Request
	await := func(n int) {
		for range n {
			if err := <-stored; err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range flood {
		if i >= storing {
			await(1)
		}
		sent = append(sent, payment("shop", i%round+1))
		p(sent[i], stored)
	}
	await(storing)
	quiet := payment("quiet", 1)
	o.put(quiet)
	o.work(o.open(o.bus.Connect(t)), func(c es.Command, answer func(es.Answer)) {
		if c.Ref.Key == "quiet" {
			b.writer.Submit(c, answer)
			return
		}
		go func() {
			<-release
			b.writer.Submit(c, answer)
		}()
	})
	if r := o.outcome(quiet.ID); r.Status != es.StatusAccepted {
		t.Errorf("%+v", r)
	}
	close(release)
	deadline := time.Now().Add(time.Minute)
	for left := o.left(); left > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d commands are left", left)
		}
		o.outcome(sent[max(flood-int(left), 0)].ID) // they leave in order; the quiet one may leave only after its outcome is told
		left = o.left()
	}
	done := 0
	for _, e := range history(t, o.ledger) {
		if m, ok := e.Data.(moved); ok && e.Ref.Key != "quiet" {
			if e.Command.ID != sent[done].ID {
				t.Fatalf("event %d is %d, want payment %d", e.Sequence, m.Amount, done)
			}
			done++
		}
	}
	if done != flood {
		t.Errorf("%d are done, want %d", done, flood)
	}
}

// handOut hands all that waits out and takes it back, a number of times, as workers do that stop before its turn comes.
func (o *office) handOut(times int) {
	o.t.Helper()
	c, err := o.js.CreateOrUpdateConsumer(o.t.Context(), topology.InboxStream, inboxStreams(o.ackIn).Worker)
	if err != nil {
		o.t.Fatal(err)
	}
	for range times {
		batch, err := c.Fetch(int(o.left()), jetstream.FetchMaxWait(20*time.Second))
		if err != nil {
			o.t.Fatal(err)
		}
		for m := range batch.Messages() {
			if err := m.Nak(); err != nil {
				o.t.Fatal(err)
			}
		}
		if err := batch.Error(); err != nil {
			o.t.Fatal(err)
		}
	}
}

// What is handed out again and again without being begun is no danger to workers: it is done, in order.
func TestInboxGivesNothingUpThatWasNotBegun(t *testing.T) {
	const each = 5
	o := openOffice(t)
	sent := o.putMany(1, each)
	o.handOut(30)
	b := start(t, o.ledger)
	o.work(o.store, b.writer.Submit)
	for _, r := range sent {
		if got := o.outcome(r.ID); got.Status != es.StatusAccepted || got.Begun != 0 {
			t.Errorf("%+v", got)
		}
	}
	inOrder(t, history(t, o.ledger), 1, each)
}

// A command of which workers die is parked in the end, and those behind it are not.
func TestInboxGivesUpWhatWorkersDieOf(t *testing.T) {
	o := openOffice(t)
	o.ackIn = 100 * time.Millisecond
	poison, after := payment("shop", 1), payment("shop", 2)
	o.put(poison)
	o.put(after)
	o.handOut(11)
	b := start(t, o.ledger)
	for deaths := 0; ; deaths++ {
		if deaths > 40 {
			t.Fatal("it is not given up")
		}
		nc := o.bus.Connect(t)
		died, done := make(chan struct{}), make(chan struct{})
		var over atomic.Bool
		stop := o.work(o.open(nc), func(c es.Command, answer func(es.Answer)) {
			switch {
			case over.Swap(true):
			case c.ID == poison.ID:
				nc.Close()
				close(died)
			default:
				b.writer.Submit(c, func(a es.Answer) { answer(a); close(done) })
			}
		})
		select {
		case <-died:
			stop()
			continue
		case <-done:
			if deaths < 10 {
				t.Errorf("it is given up after %d deaths", deaths)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the worker does nothing")
		}
		break
	}
	if r := o.outcome(after.ID); r.Status != es.StatusAccepted {
		t.Errorf("the one behind it: %+v", r)
	}
	if r := o.outcome(poison.ID); r.Status != es.StatusParked || r.Error.Code != dispatch.CodeGaveUp {
		t.Errorf("the one they die of: %+v", r)
	}
}
