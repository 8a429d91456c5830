package run

import (
	"context"

	"github.com/nats-io/nats.go"

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
	return prepareProjector(ctx, nc, options)
}

// prepareWriter makes or checks what the writer owns.
func prepareWriter(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	if err := natsstore.Ensure(ctx, nc, options); err != nil {
		return err
	}
	if err := natskv.Ensure(ctx, nc, topology.Actors(options)); err != nil {
		return err
	}
	return natskv.Ensure(ctx, nc, topology.Baton(options))
}

// prepareProjector makes or checks what the projector owns.
func prepareProjector(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	for _, bucket := range topology.ChainBuckets() {
		if err := natskv.Ensure(ctx, nc, topology.Bucket(bucket, options)); err != nil {
			return err
		}
	}
	return natskv.Ensure(ctx, nc, topology.Marks(options))
}
