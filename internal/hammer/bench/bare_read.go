package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/project"
	"catenary/internal/topology"
)

// bareReplay reads all messages with nats.go alone, and no more of them than their headers.
func (r *reading) bareReplay(ctx context.Context) (figure, error) {
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	n, err := r.replay(ctx, func() error { return nil })
	found, watched := watch.figure(n, nil)
	return found, errors.CombineErrors(errors.Wrap(err, bareReplay), watched)
}

// replay reads all events with nats.go alone, parses their headers, and does something for each.
func (r *reading) replay(ctx context.Context, do func() error) (n int, err error) {
	consumer, err := r.js.OrderedConsumer(ctx, topology.EventStream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	over := false
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		if over || m.Headers() == nil {
			return
		}
		n++
		if err := do(); err != nil || uint64(n) == r.tail {
			over = true
			done <- err
		}
	}, jetstream.PullMaxMessages(bareReadAhead))
	if err != nil {
		return 0, err
	}
	defer reading.Stop()
	select {
	case err := <-done:
		return n, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// barePuts publishes what stands in the bucket of assignments, with nats.go alone and the guards a projector has, to a stream
// that is configured as a bucket.
func (r *reading) barePuts(d time.Duration) func(context.Context) (figure, error) {
	return func(ctx context.Context) (figure, error) {
		b, err := r.bareBucket(ctx)
		if err != nil {
			return figure{}, errors.Wrap(err, barePuts)
		}
		return b.run(ctx, pipelined, d)
	}
}

// bareProjection is the least that a projector has to do: it reads all events with nats.go alone, and publishes a value for each
// as barePuts does.
func (r *reading) bareProjection(ctx context.Context) (figure, error) {
	b, err := r.bareBucket(ctx)
	if err != nil {
		return figure{}, errors.Wrap(err, bareProjection)
	}
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	n, err := r.replay(ctx, b.publish)
	if err == nil {
		err = b.settled(ctx)
	}
	found, watched := watch.figure(n, nil)
	return found, errors.CombineErrors(errors.Wrap(err, bareProjection), watched)
}

// bareBucket makes an empty stream that is configured as a bucket, as ours begin with empty ones, and takes what stands in the bucket of
// assignments to be published to it.
func (r *reading) bareBucket(ctx context.Context) (*bare, error) {
	if err := r.js.DeleteStream(ctx, topology.BucketStream(bareStream)); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	if _, err := r.js.CreateStream(ctx, topology.Bucket(bareStream, r.options)); err != nil {
		return nil, err
	}
	b := &bare{nc: r.bareConn}
	var err error
	if b.js, err = jetstream.New(r.bareConn, jetstream.WithPublishAsyncMaxPending(project.DefaultMaxInFlight), jetstream.WithPublishAsyncTimeout(bareTimeout)); err != nil {
		return nil, err
	}
	origin, err := r.js.Stream(ctx, topology.BucketStream(topology.BucketAssignments))
	if err != nil {
		return nil, err
	}
	for sequence := uint64(1); sequence <= samples; sequence++ {
		m, err := origin.GetMsg(ctx, sequence)
		if err != nil {
			return nil, errors.Wrapf(err, "read value %s", strconv.FormatUint(sequence, 10))
		}
		key := strings.TrimPrefix(m.Subject, topology.BucketSubject(topology.BucketAssignments, ""))
		b.messages = append(b.messages, &nats.Msg{Subject: topology.BucketSubject(bareStream, key), Header: m.Header, Data: m.Data})
	}
	return b, nil
}
