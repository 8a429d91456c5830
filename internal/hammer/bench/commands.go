package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natsstore"
	"catenary/internal/hammer"
)

// The load spreads over nodeCount × moduleCount aggregates.
const (
	nodeCount   = 1_000
	moduleCount = 20
	// warmUp is how long a row is run before it is measured.
	warmUp = 200 * time.Millisecond
)

// bencher runs rows.
type bencher struct {
	config
	dir  string
	talk io.Writer
	// durable is the rate of 1,024 callers on one node with fsync, once measured: what an import is held against.
	durable float64
}

func (b *bencher) sayf(format string, args ...any) {
	fmt.Fprintf(b.talk, format+"\n", args...)
}

// wants says whether a row is asked for.
func (b *bencher) wants(name string, g ground) bool {
	return b.rows.MatchString(g.String() + ", " + name)
}

// run runs all rows that are asked for.
func (b *bencher) run(ctx context.Context) ([]line, error) {
	var lines []line
	rows := commandRows()
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].on == rows[0].on {
			n++
		}
		same := slices.DeleteFunc(slices.Clone(rows[:n]), func(r commandRow) bool { return !b.wants(r.name, r.on) })
		rows = rows[n:]
		if len(same) == 0 {
			continue
		}
		err := same[0].on.on(ctx, b.dir, func(ctx context.Context, s server) error {
			found, err := b.commandLines(ctx, s, same)
			lines = append(lines, found...)
			return err
		})
		if err != nil {
			return lines, errors.Wrap(err, same[0].on.String())
		}
	}
	for _, more := range []func(context.Context) ([]line, error){b.importLines, b.readLines, b.lagLines, b.rolloutLines} {
		found, err := more(ctx)
		lines = append(lines, found...)
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// commandLines runs the rows of one ground on a server of that kind.
func (b *bencher) commandLines(ctx context.Context, s server, rows []commandRow) ([]line, error) {
	nc, err := s.Ledger()
	if err != nil {
		return nil, err
	}
	// The bare program has a connection of its own, of the same kind: what one sends does not wait behind the other.
	bareConn, err := s.Ledger()
	if err != nil {
		return nil, err
	}
	o := s.Options()
	bare, err := newBare(ctx, bareConn, o)
	if err != nil {
		return nil, err
	}
	var lines []line
	for i, r := range rows {
		pairs, err := b.commandPairs(ctx, s, nc, bare, r, fmt.Sprintf("row%d", i))
		if err != nil {
			return lines, errors.Wrap(err, r.name)
		}
		l := line{name: r.name, ground: r.on.String(), callers: r.callers, unit: "commands", bareName: string(r.bare), target: r.target}.summed(pairs)
		if r.on == synced && r.callers == 1024 && !r.bus {
			b.durable = l.ours.rate
		}
		b.sayf("%s", l)
		lines = append(lines, l)
	}
	return lines, nil
}

// commandPairs starts a writer and runs one row as often as asked.
func (b *bencher) commandPairs(ctx context.Context, s server, nc *nats.Conn, bare *bare, r commandRow, name string) (_ []pair, err error) {
	sender, stop, err := sendTo(ctx, s, nc, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.CombineErrors(err, stop()) }()
	store, err := natsstore.Open(ctx, nc, natsstore.Config{})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	nodes, modules := nodeCount, moduleCount
	if r.hot {
		nodes, modules = 1, 1
	}
	fleet := hammer.NewFleet(name, nodes, modules)
	if err := setUp(ctx, sender, fleet); err != nil {
		return nil, err
	}
	load := hammer.Load{Callers: r.callers, InFlight: r.inFlight, For: min(warmUp, b.runTime), Next: fleet.Next}
	begun, err := store.Tail(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := measure(ctx, store, sender, load); err != nil {
		return nil, err
	}
	if err := bare.take(ctx, store, begun); err != nil {
		return nil, err
	}
	load.For = b.runTime
	var pairs []pair
	for range b.runs {
		var p pair
		if p.ours, err = measure(ctx, store, sender, load); err == nil {
			p.bare, err = bare.run(ctx, r.bare, b.runTime)
		}
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// sendTo starts what a row sends to.
func sendTo(ctx context.Context, s server, nc *nats.Conn, r commandRow) (hammer.Sender, func() error, error) {
	if r.bus {
		return overBus(ctx, s, nc, r.on)
	}
	w, err := startWriter(ctx, nc, r.on, s.Options())
	if err != nil {
		return nil, nil, err
	}
	return w.sender(), w.close, nil
}

// measure runs a load once, and counts only what stands in the stream.
func measure(ctx context.Context, store es.Store, sender hammer.Sender, load hammer.Load) (figure, error) {
	before, err := store.Tail(ctx)
	if err != nil {
		return figure{}, err
	}
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	result, err := hammer.Run(ctx, sender, load)
	if err == nil {
		err = result.Err()
	}
	if err != nil {
		return figure{}, err
	}
	found, err := watch.figure(result.Accepted(), result.Waited)
	if err != nil {
		return figure{}, err
	}
	after, err := store.Tail(ctx)
	if err != nil {
		return figure{}, err
	}
	if stored := int(after - before); stored != result.Accepted() {
		return figure{}, errors.Newf("%d commands were accepted and %d events stored", result.Accepted(), stored)
	}
	return found, nil
}

// overBus starts the writer's process and gives a sender in the people's account.
func overBus(ctx context.Context, s server, ledger *nats.Conn, g ground) (_ hammer.Sender, stop func() error, err error) {
	p, err := startParts(ctx, writerPart(ledger, s, g))
	if err != nil {
		return nil, nil, err
	}
	nc, err := nats.Connect(s.ClientURL(), nats.Name("bench"))
	if err != nil {
		return nil, nil, errors.CombineErrors(errors.Wrap(err, "connect as people do"), p.stop())
	}
	pipeline, err := dispatch.NewPipeline(nc, 0)
	if err != nil {
		nc.Close()
		return nil, nil, errors.CombineErrors(err, p.stop())
	}
	return hammer.OverBus{Post: pipeline.Post, NewID: newID}, func() error {
		err := pipeline.Close()
		nc.Close()
		return errors.CombineErrors(err, p.stop())
	}, nil
}
