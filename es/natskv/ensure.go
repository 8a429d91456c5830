package natskv

import (
	"context"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/natsstore"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

// ConfigError says that a bucket exists whose stream could lose, change or reorder values.
type ConfigError = streams.ConfigError

// Ensure creates the stream behind a bucket, or checks that the one that exists is safe. A size limit that is lower than
// asked for is raised, what is to be told of its values is told from then on, and one that takes no batches, of an older version, takes them
// from then on; a higher limit stays, and so does what is told. It gives a [*ConfigError] for a bucket that is not safe, and errors marked [es.ErrFull] or [es.ErrUnavailable].
func Ensure(ctx context.Context, nc *nats.Conn, want jetstream.StreamConfig) error {
	bucket, ok := strings.CutPrefix(want.Name, topology.BucketStream(""))
	if !ok || bucket == "" {
		return errors.AssertionFailedf("stream %s is not the stream of a bucket", want.Name)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrapf(err, "bucket %s", bucket)
	}
	_, err = streams.Ensure(ctx, js, streams.Plan{Want: want, Kind: natsstore.EnsureError, Check: func(found jetstream.StreamConfig) error {
		told := want
		if told.RePublish == nil {
			told.RePublish = topology.Republish(bucket)
		}
		return streams.Check("values", told, found)
	}})
	return err
}
