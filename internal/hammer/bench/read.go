package main

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"time"

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
	bareReplay = "unfiltered replay that parses headers"
	barePuts   = "guarded publishes of the same values, pipelined"
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

// bareReplay reads all messages with nats.go alone, and no more of them than their headers.
func (r *reading) bareReplay(ctx context.Context) (figure, error) {
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	consumer, err := r.js.OrderedConsumer(ctx, topology.EventStream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return figure{}, errors.Wrap(err, bareReplay)
	}
	done := make(chan struct{})
	var n uint64
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		if m.Headers() != nil {
			n++
		}
		if n == r.tail {
			close(done)
		}
	}, jetstream.PullMaxMessages(bareReadAhead))
	if err != nil {
		return figure{}, errors.Wrap(err, bareReplay)
	}
	defer reading.Stop()
	select {
	case <-done:
		return watch.figure(int(n), nil)
	case <-ctx.Done():
		return figure{}, ctx.Err()
	}
}

// barePuts publishes what stands in the bucket of assignments, with nats.go alone and the guards a projector has, to a stream
// that is configured as a bucket.
func (r *reading) barePuts(d time.Duration) func(context.Context) (figure, error) {
	return func(ctx context.Context) (figure, error) {
		c := topology.Bucket(bareStream, r.options)
		stream, err := r.js.CreateOrUpdateStream(ctx, c)
		if err != nil {
			return figure{}, errors.Wrap(err, barePuts)
		}
		b := &bare{nc: r.bareConn, tail: stream.CachedInfo().State.LastSeq}
		if b.js, err = jetstream.New(r.bareConn, jetstream.WithPublishAsyncMaxPending(project.DefaultMaxInFlight), jetstream.WithPublishAsyncTimeout(bareTimeout)); err != nil {
			return figure{}, errors.Wrap(err, barePuts)
		}
		origin, err := r.js.Stream(ctx, topology.BucketStream(topology.BucketAssignments))
		if err != nil {
			return figure{}, errors.Wrap(err, barePuts)
		}
		for sequence := uint64(1); sequence <= samples; sequence++ {
			m, err := origin.GetMsg(ctx, sequence)
			if err != nil {
				return figure{}, errors.Wrapf(err, "read value %s", strconv.FormatUint(sequence, 10))
			}
			key := strings.TrimPrefix(m.Subject, topology.BucketSubject(topology.BucketAssignments, ""))
			b.messages = append(b.messages, &nats.Msg{Subject: topology.BucketSubject(bareStream, key), Header: m.Header, Data: m.Data})
		}
		return b.run(ctx, pipelined, d)
	}
}
