package main

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/internal/topology"
	"catenary/projections"
)

// project projects all events into new buckets, and counts the values.
func (r *reading) project(ctx context.Context) (figure, error) {
	return r.projected(ctx, func(reached map[string]project.Progress) (values int) {
		for _, p := range reached {
			values += int(p.Revision)
		}
		return values
	}, nil)
}

// rebuild does the same, counts the events, and says how far it is.
func (r *reading) rebuild(sayf func(string, ...any)) func(context.Context) (figure, error) {
	return func(ctx context.Context) (figure, error) {
		return r.projected(ctx, func(map[string]project.Progress) int { return int(r.tail) }, sayf)
	}
}

// projected runs a projector over new buckets until it has passed all events. Sayf may be nil.
func (r *reading) projected(ctx context.Context, count func(map[string]project.Progress) int, sayf func(string, ...any)) (figure, error) {
	for _, bucket := range topology.ChainBuckets() {
		if err := r.js.DeleteStream(ctx, topology.BucketStream(bucket)); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return figure{}, errors.Wrap(err, "drop a bucket")
		}
		if err := natskv.Ensure(ctx, r.nc, topology.Bucket(bucket, r.options)); err != nil {
			return figure{}, err
		}
	}
	specs, err := project.Specs(projections.All, func(bucket string) (project.Bucket, error) { return natskv.Open(ctx, r.nc, bucket) })
	if err != nil {
		return figure{}, err
	}
	runner, err := project.New(project.Config{Store: r.store, Registry: events.Registry(), Views: specs})
	if err != nil {
		return figure{}, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	watch, err := startWatch()
	if err != nil {
		stop()
		return figure{}, err
	}
	go func() { ended <- runner.Run(running) }()
	go func() { ended <- tellProgress(running, runner, sayf) }()
	reached, err := runner.Wait(ctx, r.tail)
	found, watched := watch.figure(count(reached), nil)
	stop()
	return found, errors.CombineErrors(errors.CombineErrors(err, watched), errors.CombineErrors(<-ended, <-ended))
}

// progressInterval is how often it is said how far a projector is.
const progressInterval = time.Second

// tellProgress says how far the slowest view is, until the context ends.
func tellProgress(ctx context.Context, runner *project.Runner, sayf func(string, ...any)) error {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if sayf == nil {
			continue
		}
		status := runner.Status(ctx)
		if len(status.Views) == 0 || ctx.Err() != nil {
			continue
		}
		slowest := status.Views[0]
		for _, v := range status.Views {
			if v.Position.Event < slowest.Position.Event {
				slowest = v
			}
		}
		sayf("%s: event %d of %d, %.0f a second", slowest.View, slowest.Position.Event, status.Tail, slowest.EventsPerSecond)
	}
}

const (
	rowLag = "lag at the copies behind 5,000 commands a second"
	// lagRate is how many commands are sent a second meanwhile, and lagTarget what the lag must not exceed.
	lagRate   = 5_000
	lagTarget = 50 * time.Millisecond
	// lagLonger is how many times longer than other rows a run takes. What is on its way when the last command is sent counts into the
	// time: of a second it would be a tenth.
	lagLonger = 4
)

// lagLines measures how long it takes from when the writer records an event until people can read what it led to, in the copy
// of the bucket in their own account.
func (b *bencher) lagLines(ctx context.Context) ([]line, error) {
	if !b.wants(rowLag, unsynced) {
		return nil, nil
	}
	l := line{name: rowLag, ground: unsynced.String(), unit: "values", target: target{p99: lagTarget, rate: 0.95 * lagRate}}
	err := unsynced.onChain(ctx, b.dir, func(ctx context.Context, s server, nc *nats.Conn) (err error) {
		pipeline, err := dispatch.NewPipeline(nc, 0)
		if err != nil {
			return err
		}
		defer func() { err = errors.CombineErrors(err, pipeline.Close()) }()
		sender := hammer.OverBus{Post: pipeline.Post, NewID: newID}
		fleet := hammer.NewFleet("lag", nodeCount, moduleCount)
		if err := setUp(ctx, sender, fleet); err != nil {
			return err
		}
		reading, err := nats.Connect(s.ClientURL(), nats.Name("bench reader"))
		if err != nil {
			return errors.Wrap(err, "connect as people do")
		}
		defer reading.Close()
		copied, err := natskv.Open(ctx, reading, topology.BucketAssignments)
		if err != nil {
			return err
		}
		var pairs []pair
		for range b.runs {
			found, err := lagBehind(ctx, copied, sender, hammer.Load{InFlight: 4096, Commands: max(int(lagRate*lagLonger*b.runTime.Seconds()), 1), Rate: lagRate, Next: fleet.Next})
			if err != nil {
				return errors.Wrap(err, rowLag)
			}
			pairs = append(pairs, pair{ours: found})
		}
		l = l.summed(pairs)
		b.sayf("%s", l)
		return nil
	})
	return []line{l}, err
}

// lagBehind sends a load and measures the lag of each value it leads to.
func lagBehind(ctx context.Context, copied *natskv.Bucket, sender hammer.Sender, load hammer.Load) (figure, error) {
	state, err := copied.State(ctx)
	if err != nil {
		return figure{}, err
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(float64(load.Commands)/load.Rate*float64(time.Second))+bareTimeout)
	defer stop()
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	sent := make(chan error, 1)
	go func() {
		result, err := hammer.Run(ctx, sender, load)
		if err = errors.CombineErrors(err, result.Err()); err != nil {
			stop() // not all values will come
		}
		sent <- err
	}()
	var lag hammer.Latency
	seen := 0
	for e, err := range copied.Follow(ctx, state.Last) {
		if err != nil {
			stop()
			return figure{}, errors.CombineErrors(<-sent, errors.Wrapf(err, "%d of %d values came", seen, load.Commands))
		}
		lag.Add(time.Since(e.Meta.Recorded))
		if seen++; seen == load.Commands {
			break
		}
	}
	found, err := watch.figure(seen, &lag)
	return found, errors.CombineErrors(<-sent, err)
}
