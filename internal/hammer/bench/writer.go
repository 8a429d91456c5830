package main

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/internal/topology"
)

// actor is the opaque id of who sends the load, as long as real ones are.
const actor = "5f0c1f6e-3c1b-4f7c-9a52-0197b1f05c3e"

// newID gives a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// writing is a writer at work in this process, as internal/run wires it, without a bus before it.
type writing struct {
	store  *natsstore.Store
	writer *dispatch.Writer
	stop   context.CancelFunc
	ended  chan error
}

// startWriter makes the event stream and starts a writer on it.
func startWriter(ctx context.Context, nc *nats.Conn, g ground, o topology.Options) (*writing, error) {
	if err := natsstore.Ensure(ctx, nc, o); err != nil {
		return nil, err
	}
	store, err := natsstore.Open(ctx, nc, natsstore.Config{})
	if err != nil {
		return nil, err
	}
	world, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		return nil, err
	}
	w, err := dispatch.NewWriter(dispatch.Config{
		Store: store, Registry: events.Registry(), NewModel: func() es.Decider { return world },
		Start: commands.StartWriter{WriterStarted: events.WriterStarted{ID: newID(), Program: "bench", Rules: aggregates.RulesVersion}},
		Now:   time.Now, NewID: newID, Actor: actor, Durability: g.dispatch(),
	})
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	r := &writing{store: store, writer: w, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- w.Run(running) }()
	select {
	case <-w.Ready():
		return r, nil
	case err := <-r.ended:
		stop()
		store.Close()
		return nil, errors.Wrap(err, "the writer did not start")
	}
}

// close stops the writer and gives why it ended.
func (w *writing) close() error {
	w.stop()
	err := <-w.ended
	w.store.Close()
	return err
}

// sender hands commands to the writer itself.
func (w *writing) sender() hammer.Sender {
	return hammer.InProcess{Submit: w.writer.Submit, Decoder: commands.Commands(), NewID: newID, Actor: actor}
}

// setUp makes a fleet known.
func setUp(ctx context.Context, s hammer.Sender, f *hammer.Fleet) error {
	r, err := hammer.Run(ctx, s, setupLoad(f))
	if err == nil {
		err = r.Err()
	}
	return errors.Wrap(err, "set the fleet up")
}

// setupLoad is the load that makes a fleet known.
func setupLoad(f *hammer.Fleet) hammer.Load {
	setup := f.Setup()
	given := make(chan es.Payload, len(setup))
	for _, p := range setup {
		given <- p
	}
	return hammer.Load{Callers: 1, InFlight: 256, Commands: len(setup), Next: func() es.Payload { return <-given }}
}
