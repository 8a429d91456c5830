package commands_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/memstore"
	"catenary/events"
)

// fleet is a model that knows of nodes alone: enough to answer commands as the real one does.
type fleet struct {
	versions map[es.Ref]uint64
	known    map[es.Ref]bool
	applied  []es.Event
}

func newFleet() es.Decider { return &fleet{versions: map[es.Ref]uint64{}, known: map[es.Ref]bool{}} }

func (f *fleet) Decide(c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.StartWriter:
		return []es.KeyedEvent{{Ref: c.Ref, Data: p.WriterStarted}}, nil
	case commands.RegisterNode:
		if f.known[c.Ref] {
			return nil, nil
		}
		return []es.KeyedEvent{{Ref: c.Ref, Data: events.NodeRegistered{Node: p.Node, ManagedBy: events.ManagedByAgent, Labels: p.Labels}}}, nil
	case commands.RelabelNode:
		if !f.known[c.Ref] {
			return nil, es.Refuse("no-such-node", "there is no node "+p.Node, "register it first")
		}
		return []es.KeyedEvent{{Ref: c.Ref, Data: events.NodeRelabelled{Labels: p.Labels}}}, nil
	}
	return nil, fmt.Errorf("unknown payload %T", c.Data)
}

func (f *fleet) Apply(e es.Event) error {
	f.applied = append(f.applied, e)
	f.replay()
	return nil
}

func (f *fleet) replay() {
	clear(f.versions)
	clear(f.known)
	for _, e := range f.applied {
		f.versions[e.Ref]++
		if _, ok := e.Data.(events.NodeRegistered); ok {
			f.known[e.Ref] = true
		}
	}
}

func (f *fleet) Note(es.Command)           {}
func (f *fleet) Version(ref es.Ref) uint64 { return f.versions[ref] }
func (f *fleet) Fenced(uint64) bool        { return false }
func (f *fleet) Mark() es.Mark             { return es.Mark(len(f.applied)) }
func (f *fleet) Release(es.Mark)           {}
func (f *fleet) Rollback(m es.Mark)        { f.applied = f.applied[:m]; f.replay() }

// nobody is a directory that keeps no names.
type nobody struct{}

func (nobody) Erase(context.Context, string) error { return nil }

func (nobody) Load(context.Context) (map[string]dispatch.Who, error) { return nil, nil }
func (nobody) Put(context.Context, string, dispatch.Who) error       { return nil }

// localBus is a writer over a store in memory, in this process. Programs use dispatch.NewClient instead.
type localBus struct {
	writer *dispatch.Writer
	intake *dispatch.Intake
	stop   func()
}

func newLocalBus() (*localBus, error) {
	id := func() string { return uuid.Must(uuid.NewV7()).String() }
	actors, err := dispatch.NewActors(context.Background(), nobody{}, id)
	if err != nil {
		return nil, err
	}
	w, err := dispatch.NewWriter(dispatch.Config{
		Store: memstore.New(memstore.Config{}), Registry: events.Registry(), NewModel: newFleet, Now: time.Now, NewID: id, Actor: id(),
		Start: commands.StartWriter{WriterStarted: events.WriterStarted{ID: id(), Program: "test", Rules: 1}},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-done:
		cancel()
		return nil, err
	}
	return &localBus{
		writer: w, stop: func() { cancel(); <-done },
		intake: &dispatch.Intake{Decoder: commands.Commands(), Actors: actors, NewID: id, Logger: slog.New(slog.DiscardHandler)},
	}, nil
}

func (b *localBus) Send(ctx context.Context, r dispatch.Request) (es.Answer, error) {
	c, err := b.intake.Command(ctx, r, dispatch.Who{Name: "ann"})
	if err != nil {
		return es.Answer{}, err
	}
	answers := make(chan es.Answer, 1)
	b.writer.Submit(c, func(a es.Answer) { answers <- a })
	select {
	case a := <-answers:
		return a, nil
	case <-ctx.Done():
		return es.Answer{}, ctx.Err()
	}
}
