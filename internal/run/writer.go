package run

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/topology"
)

// insideName is who acts on calls from inside the ledger's account that do not say.
const insideName = "catenary"

// WriterConfig is what a writer's process is told.
type WriterConfig struct {
	// Streams are the limits of the streams the writer owns.
	Streams topology.Options
	// Durability is that of the event stream.
	Durability dispatch.Durability
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger is the process's log. Default: slog.Default().
	Logger *slog.Logger
	// Ready is called when commands are taken. It may be nil.
	Ready func()
}

// Writer runs a writer over a connection in the ledger's account until the context ends. It makes or checks the event stream
// and the actor directory first. It gives [ErrConnectionClosed], the errors of natsstore.Ensure and natskv.Ensure, and why
// the writer can't go on.
func Writer(ctx context.Context, nc *nats.Conn, c WriterConfig) error {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	log := c.Logger.With("component", "writer")
	if err := prepareWriter(ctx, nc, c.Streams); err != nil {
		return stoppedBy(ctx, err)
	}
	store, err := natsstore.Open(ctx, nc, natsstore.Config{})
	if err != nil {
		return stoppedBy(ctx, err)
	}
	defer store.Close()
	intake, err := newIntake(ctx, nc, log)
	if err != nil {
		return stoppedBy(ctx, err)
	}
	writer, err := newWriter(ctx, c, store, intake, log)
	if err != nil {
		return stoppedBy(ctx, err)
	}
	inbox, err := openInbox(ctx, nc, c.Streams)
	if err != nil {
		return stoppedBy(ctx, err)
	}
	// The writer outlives what commands come from, so that every command that was taken in gets its answer.
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var sources atomic.Int32
	sources.Store(2)
	ended := func() {
		if sources.Add(-1) == 0 {
			stop()
		}
	}
	return Together(ctx, map[string]func(context.Context) error{
		"writer": func(ctx context.Context) error {
			err := writer.Run(writing)
			if err == nil && writing.Err() != nil {
				<-ctx.Done() // why it had to end is for the service to say
			}
			return err
		},
		"connection": func(ctx context.Context) error { return awaitClosed(ctx, nc) },
		"command service": func(ctx context.Context) error {
			defer ended()
			return serveCommands(ctx, nc, c, writer, intake, log)
		},
		"inbox": func(ctx context.Context) error {
			defer ended()
			return workInbox(ctx, inbox, writer, intake, c.Now, log)
		},
		"inbox service": func(ctx context.Context) error { return serveInbox(ctx, nc, inbox, intake, c.Now, log) },
	})
}

// stoppedBy gives nil when a step failed only because the process is told to stop.
func stoppedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func newIntake(ctx context.Context, nc *nats.Conn, log *slog.Logger) (*dispatch.Intake, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, errors.Wrap(err, "open the actor directory")
	}
	directory, err := dispatch.OpenDirectory(ctx, js, topology.BucketActors)
	if err != nil {
		return nil, err
	}
	// A random id: one with a time would tell when a person was first seen, also after they were erased.
	actors, err := dispatch.NewActors(ctx, directory, uuid.NewString)
	if err != nil {
		return nil, err
	}
	return &dispatch.Intake{Decoder: commands.Commands(), Actors: actors, NewID: newID, Logger: log}, nil
}

func newWriter(ctx context.Context, c WriterConfig, store es.Store, intake *dispatch.Intake, log *slog.Logger) (*dispatch.Writer, error) {
	actor, err := intake.Actors.ID(ctx, dispatch.Who{Name: insideName})
	if err != nil {
		return nil, err
	}
	rules := aggregates.Config{}
	if _, err := aggregates.NewWorld(rules); err != nil {
		return nil, err
	}
	return dispatch.NewWriter(dispatch.Config{
		Store:    store,
		Registry: events.Registry(),
		NewModel: func() es.Decider {
			world, err := aggregates.NewWorld(rules)
			if err != nil {
				panic(err) // the same configuration was taken a moment ago
			}
			return world
		},
		Start: commands.StartWriter{WriterStarted: events.WriterStarted{
			ID: newID(), Program: Version(), Rules: aggregates.RulesVersion,
		}},
		Now: c.Now, NewID: newID, Actor: actor, Durability: c.Durability, Logger: log,
	})
}

// serveCommands answers commands from when the writer is ready until the context ends.
func serveCommands(ctx context.Context, nc *nats.Conn, c WriterConfig, writer *dispatch.Writer, intake *dispatch.Intake, log *slog.Logger) error {
	select {
	case <-writer.Ready():
	case <-ctx.Done():
		return nil
	}
	var known []string
	for _, v := range commands.Commands().Verbs() {
		known = append(known, v.Aggregate+"."+v.Verb)
	}
	service, err := dispatch.NewService(ctx, dispatch.ServiceConfig{
		Name: topology.WriterService, Version: Version(), Conn: nc, Intake: intake, Offer: writer.Offer,
		Inside: insideName, Commands: known, Logger: log,
	})
	if err != nil {
		return err
	}
	// Ready means that the server knows of the service, too.
	if err = nc.Flush(); err == nil {
		if c.Ready != nil {
			c.Ready()
		}
		<-ctx.Done()
	}
	err = errors.CombineErrors(stoppedBy(ctx, err), service.Stop())
	if nc.IsClosed() {
		// The subscriptions went with the connection, whose end has its own report.
		return nil
	}
	return err
}

// newID gives a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
