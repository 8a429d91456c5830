package main

import (
	"context"
	"runtime"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/aggregates"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/internal/topology"
	"catenary/projections"
)

const (
	// replayed is how many events are read.
	replayed = 100_000
	// bareReadAhead is how many messages bare nats.go asks for at a time: pull consumers with thousands on their way are its
	// fast way to read.
	bareReadAhead = 4_000
)

// Names of the rows about reading.
const (
	rowFoldViews = "read and fold all views"
	rowFoldWorld = "read and fold the writer's world"
	rowProject   = "project into all buckets, from nothing"
	rowRebuild   = "make every view from nothing"
)

// Their counterparts.
const (
	bareReplay     = "unfiltered replay that parses headers"
	barePuts       = "guarded publishes of the same values, pipelined"
	bareProjection = "the same publishes, one for each event of an unfiltered replay"
)

// readLines runs the rows about reading the event stream, on a stream that a load has filled.
func (b *bencher) readLines(ctx context.Context) ([]line, error) {
	want := map[string]bool{}
	for _, name := range []string{rowFoldViews, rowFoldWorld, rowProject, rowRebuild, rowAudit} {
		if b.wants(name, unsynced) {
			want[name] = true
		}
	}
	if len(want) == 0 {
		return nil, nil
	}
	var lines []line
	err := unsynced.on(ctx, b.dir, func(ctx context.Context, s server) error {
		r, err := newReading(ctx, s)
		if err != nil {
			return err
		}
		defer r.close()
		for _, row := range []struct {
			name, unit, bareName string
			target               target
			ours, bare           func(context.Context) (figure, error)
		}{
			{rowFoldViews, "events", bareReplay, target{ratio: 0.6}, r.foldViews, r.bareReplay},
			{rowFoldWorld, "events", bareReplay, target{}, r.foldWorld, r.bareReplay},
			{rowProject, "values", barePuts, target{ratio: 0.7}, r.project, r.barePuts(b.runTime)},
			{rowProject, "values", bareProjection, target{ratio: 0.7}, r.project, r.bareProjection},
			{rowRebuild, "events", "", target{rate: 20_000}, r.rebuild(b.sayf), nil},
			{rowAudit, "events", bareReplay, target{rate: 30_000}, r.takeIn(b.dir), r.bareReplay},
		} {
			if !want[row.name] {
				continue
			}
			var pairs []pair
			for range b.runs {
				var p pair
				if p.ours, err = row.ours(ctx); err == nil && row.bare != nil {
					p.bare, err = row.bare(ctx)
				}
				if err != nil {
					return errors.Wrap(err, row.name)
				}
				pairs = append(pairs, p)
			}
			l := line{name: row.name, ground: unsynced.String(), unit: row.unit, bareName: row.bareName, target: row.target}.summed(pairs)
			b.sayf("%s", l)
			lines = append(lines, l)
		}
		return nil
	})
	return lines, err
}

// reading is a filled event stream and who reads it.
type reading struct {
	*writing
	nc, bareConn *nats.Conn
	js           jetstream.JetStream
	options      topology.Options
	tail         uint64
}

func newReading(ctx context.Context, s server) (_ *reading, err error) {
	r := &reading{options: s.Options()}
	if r.nc, err = s.Ledger(); err != nil {
		return nil, err
	}
	if r.bareConn, err = s.Ledger(); err != nil {
		return nil, err
	}
	if r.js, err = jetstream.New(r.bareConn); err != nil {
		return nil, errors.Wrap(err, "bare nats.go")
	}
	if r.writing, err = startWriter(ctx, r.nc, unsynced, r.options); err != nil {
		return nil, err
	}
	fleet := hammer.NewFleet("read", nodeCount, moduleCount)
	err = setUp(ctx, r.sender(), fleet)
	if err == nil {
		var filled hammer.Result
		filled, err = hammer.Run(ctx, r.sender(), hammer.Load{InFlight: 4096, Commands: replayed - len(fleet.Setup()), Next: fleet.Next})
		err = errors.CombineErrors(err, filled.Err())
	}
	if err == nil {
		r.tail, err = r.store.Tail(ctx)
	}
	if err != nil {
		return nil, errors.CombineErrors(errors.Wrap(err, "fill the event stream"), r.close())
	}
	return r, nil
}

// read reads all events as a projector that is behind, every verification and the writer do: the chain is verified, and each event decoded,
// in so many goroutines ahead of who takes it.
func (r *reading) read(ctx context.Context, workers int, take func(es.Event) error) (figure, error) {
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	n := 0
	for v, err := range es.Ahead(ctx, events.Registry(), r.store, es.Head{}, workers) {
		if err == nil {
			err = v.Err
		}
		if err == nil {
			err = take(v.Event)
		}
		if err != nil {
			return figure{}, err
		}
		n++
	}
	return watch.figure(n, nil)
}

func (r *reading) foldViews(ctx context.Context) (figure, error) {
	type folding struct {
		project.View
		reads map[string]bool
	}
	var views []folding
	for _, v := range projections.All() {
		f := folding{View: v}
		if s, ok := v.(project.Selective); ok {
			f.reads = map[string]bool{}
			for _, aggregate := range s.Aggregates() {
				f.reads[aggregate] = true
			}
		}
		views = append(views, f)
	}
	return r.read(ctx, 1, func(e es.Event) error {
		for _, v := range views {
			if v.reads != nil && !v.reads[e.Ref.Aggregate] {
				continue
			}
			if _, err := v.Fold(e); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *reading) foldWorld(ctx context.Context) (figure, error) {
	world, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		return figure{}, err
	}
	return r.read(ctx, runtime.GOMAXPROCS(0), world.Apply)
}
