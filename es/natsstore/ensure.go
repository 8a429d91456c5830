package natsstore

import (
	"context"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/streams"
	"catenary/internal/topology"
)

// ConfigError says that a stream exists whose configuration could lose, change or reorder what is kept in it.
type ConfigError = streams.ConfigError

// keepsEvents is what the event stream is for, in errors.
const keepsEvents = "events"

// Ensure creates the event stream, or checks that the one that exists is safe to keep events in. A size limit that is
// lower than asked for is raised; a higher one stays, since lowering a limit can't make room. The time for which message ids
// are kept is set. It gives a [*ConfigError] for a stream that is not safe, and errors marked [es.ErrFull] or
// [es.ErrUnavailable].
func Ensure(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrap(err, "event stream")
	}
	_, err = streams.Ensure(ctx, js, streams.Plan{Want: topology.Events(options), Keeps: keepsEvents, Kind: ensureError})
	return err
}
