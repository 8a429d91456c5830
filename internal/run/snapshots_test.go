package run

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/events"
	"catenary/internal/topology"
)

// atWork runs a writer until the test calls stop, which gives why it ended. Without a mistake it is ready when atWork returns.
func atWork(t *testing.T, nc *nats.Conn, c WriterConfig) (stop func() error) {
	t.Helper()
	ready, done := make(chan struct{}), make(chan error, 1)
	c.Logger, c.Ready = slog.New(slog.DiscardHandler), func() { close(ready) }
	c.Streams = topology.Options{EventStoreBytes: 100_000_000, BucketBytes: 10_000_000}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- Writer(ctx, nc, c) }()
	select {
	case <-ready:
	case err := <-done:
		done <- err
	case <-time.After(waitLimit):
		t.Fatal("the writer is neither ready nor has it ended")
	}
	return func() error {
		cancel()
		return <-done
	}
}

// The writer's own world goes through a snapshot and back, over the bus: what was done is known, and is not done again. And when
// the stream is gone, nothing is done before somebody has decided.
func TestWriterStartsFromASnapshot(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	client := commands.NewClient(dispatch.NewClient(nc))
	send := func(p es.Payload, id string) es.Answer {
		t.Helper()
		answer, err := client.Send(t.Context(), p, dispatch.Options{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	config := WriterConfig{SnapshotEvery: 5}
	stop := atWork(t, nc, config)
	module := events.ModuleSpec{Module: "web"}
	ref := events.Reference{Package: &events.Package{Name: "web", Version: "1"}}
	send(commands.RegisterNode{Node: "n1"}, newID())
	send(commands.RegisterModule{ModuleSpec: module}, newID())
	assign, id := commands.Assign{Node: "n1", Module: "web", Reference: ref}, newID()
	first := send(assign, id)
	if first.Status != es.StatusAccepted {
		t.Fatalf("answer %+v", first)
	}
	for range 2 {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		stop = atWork(t, nc, config)
		again := send(assign, id)
		again.Repeated = false
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("the repeat got another answer (-first +repeat):\n%s", diff)
		}
		if a := send(assign, newID()); a.Status != es.StatusUnchanged {
			t.Errorf("assigning what stands: %+v", a)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := js.ObjectStore(t.Context(), topology.ObjectsSnapshots)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := objects.List(t.Context()); err != nil || len(list) == 0 {
		t.Fatalf("no snapshot was made: %v", err)
	}
	if err := js.DeleteStream(t.Context(), topology.EventStream); err != nil {
		t.Fatal(err)
	}
	if err := atWork(t, nc, config)(); !errors.Is(err, ErrContradicted) {
		t.Fatalf("over a stream that lost its events the writer ended with %v", err)
	}
	config.DiscardSnapshots = true
	if err := atWork(t, nc, config)(); !errors.Is(err, ErrContradicted) {
		t.Fatalf("told to discard the snapshots, over a stream that lost its events the writer ended with %v", err)
	}
	config.Accept = &AcceptedLoss{Reason: "the disk broke"}
	stop = atWork(t, nc, config)
	if a := send(commands.RegisterNode{Node: "n1"}, newID()); a.Status != es.StatusAccepted {
		t.Errorf("after starting anew: %+v", a)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
