package run

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// Prepare makes or checks all that a chain keeps: the event stream, the actor directory, the inbox, the buckets and the marks. Whoever
// embeds the server calls it before making copies of the buckets, which must be there before anything writes to them. It gives
// the errors of natsstore.Ensure, natskv.Ensure and dispatch.OpenInbox.
func Prepare(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	if err := prepareWriter(ctx, nc, options); err != nil {
		return err
	}
	if _, err := openInbox(ctx, nc, options); err != nil {
		return err
	}
	if _, err := dispatch.OpenRefused(ctx, nc, topology.Refused(options)); err != nil {
		return err
	}
	return prepareProjector(ctx, nc, options)
}

// How long making the streams may take. When several processes make a stream of a cluster at the same time, the server leaves all
// but one of them without an answer; asked again, it gives the stream that was made.
const (
	prepareTry      = 2 * time.Second
	preparePatience = 20 * time.Second
)

// withOthers makes or checks streams while others may do the same: it tries again while the server gives no answer.
func withOthers(ctx context.Context, prepare func(context.Context) error) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		try, cancel := context.WithTimeout(ctx, prepareTry)
		defer cancel()
		err := prepare(try)
		if err != nil && !errors.Is(err, es.ErrUnavailable) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(preparePatience))
	return err
}

// prepareWriter makes or checks what the writer owns.
func prepareWriter(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	if err := natsstore.Ensure(ctx, nc, options); err != nil {
		return err
	}
	if err := natsstore.EnsureSnapshots(ctx, nc, options); err != nil {
		return err
	}
	if err := natskv.Ensure(ctx, nc, topology.Actors(options)); err != nil {
		return err
	}
	return natskv.Ensure(ctx, nc, topology.Baton(options))
}

// prepareProjector makes or checks what the projector owns.
func prepareProjector(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	generations, err := natskv.OpenGenerations(ctx, nc, options, nil)
	if err != nil {
		return err
	}
	for _, view := range topology.ChainBuckets() {
		p, err := generations.Pointer(ctx, view)
		if err != nil {
			return err
		}
		// Former generations are left as they are, and those that were removed are not made again.
		if _, err := generations.Serve(ctx, p.Generation); err != nil {
			return err
		}
	}
	return prepareProofs(ctx, nc, options)
}
