package natskv

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/natsstore"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

// ConfigError says that a bucket exists whose configuration could lose, change or reorder values.
type ConfigError struct {
	Bucket          string
	Field           string
	Expected, Found string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("bucket %s has %s %s, expected %s: it is not safe to keep values in; update its stream %s, or keep the buckets in another server",
		e.Bucket, e.Field, e.Found, e.Expected, topology.BucketStream(e.Bucket))
}

// Ensure creates the stream behind a bucket, or checks that the one that exists is safe. A size limit that is lower than
// asked for is raised, what is to be told of its values is told from then on, and one that takes no batches, of an older version,
// takes them from then on; a higher limit stays, and so does what is told. It gives a [*ConfigError] for a bucket that is not safe, and errors marked
// [es.ErrFull] or [es.ErrUnavailable].
func Ensure(ctx context.Context, nc *nats.Conn, want jetstream.StreamConfig) error {
	bucket, ok := strings.CutPrefix(want.Name, topology.BucketStream(""))
	if !ok || bucket == "" {
		return errors.AssertionFailedf("stream %s is not the stream of a bucket", want.Name)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrapf(err, "bucket %s", bucket)
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = streams.Create(ctx, js, want)
	}
	if err != nil {
		return natsstore.EnsureError(errors.Wrapf(err, "create bucket %s", bucket))
	}
	found := stream.CachedInfo().Config
	if err := checkSafe(bucket, want, found); err != nil {
		return err
	}
	low, silent := 0 <= found.MaxBytes && found.MaxBytes < want.MaxBytes, want.RePublish != nil && found.RePublish == nil
	single := want.AllowBatchPublish && !found.AllowBatchPublish
	if !low && !silent && !single {
		return nil
	}
	if low {
		found.MaxBytes = want.MaxBytes
	}
	if silent {
		found.RePublish = want.RePublish
	}
	if single {
		found.AllowBatchPublish = true
	}
	if _, err := js.UpdateStream(ctx, found); err != nil {
		return natsstore.EnsureError(errors.Wrapf(err, "let bucket %s have %d bytes, take batches %v and tell of its values %v", bucket, found.MaxBytes, found.AllowBatchPublish, found.RePublish != nil))
	}
	return nil
}

// checkSafe compares what values rest on: nothing is dropped, deleted, rewritten or taken in by another way, and reads
// come from the leader.
func checkSafe(bucket string, want, found jetstream.StreamConfig) error {
	for _, f := range []struct {
		field           string
		expected, found any
		holds           bool
	}{
		{"Subjects", want.Subjects, found.Subjects, slices.Equal(want.Subjects, found.Subjects)},
		{"Retention", want.Retention, found.Retention, found.Retention == want.Retention},
		{"Discard", want.Discard, found.Discard, found.Discard == want.Discard},
		{"Storage", want.Storage, found.Storage, found.Storage == want.Storage},
		{"Replicas", fmt.Sprint("at least ", want.Replicas), found.Replicas, found.Replicas >= want.Replicas},
		{"PersistMode", want.PersistMode, found.PersistMode, found.PersistMode == want.PersistMode || found.PersistMode == jetstream.DefaultPersistMode},
		{"MaxMsgsPerSubject", want.MaxMsgsPerSubject, found.MaxMsgsPerSubject, found.MaxMsgsPerSubject == want.MaxMsgsPerSubject},
		{"MaxMsgs", "no limit", found.MaxMsgs, found.MaxMsgs <= 0},
		{"MaxAge", "no limit", found.MaxAge, found.MaxAge == 0},
		{"MaxBytes", "a limit", found.MaxBytes, found.MaxBytes > 0},
		{"FirstSeq", "1", found.FirstSeq, found.FirstSeq <= 1},
		{"DenyDelete", want.DenyDelete, found.DenyDelete, found.DenyDelete == want.DenyDelete},
		{"DenyPurge", want.DenyPurge, found.DenyPurge, found.DenyPurge == want.DenyPurge},
		{"AllowRollup", want.AllowRollup, found.AllowRollup, found.AllowRollup == want.AllowRollup},
		{"AllowDirect", want.AllowDirect, found.AllowDirect, found.AllowDirect == want.AllowDirect},
		{"AllowMsgTTL", false, found.AllowMsgTTL, !found.AllowMsgTTL},
		{"AllowMsgSchedules", false, found.AllowMsgSchedules, !found.AllowMsgSchedules},
		{"AllowMsgCounter", false, found.AllowMsgCounter, !found.AllowMsgCounter},
		{"SubjectDeleteMarkerTTL", "none", found.SubjectDeleteMarkerTTL, found.SubjectDeleteMarkerTTL == 0},
		{"NoAck", false, found.NoAck, !found.NoAck},
		{"Sealed", false, found.Sealed, !found.Sealed},
		{"Mirror", "none", found.Mirror, found.Mirror == nil},
		{"Sources", "none", len(found.Sources), len(found.Sources) == 0},
		{"RePublish", "none but to " + topology.ToldPrefix, found.RePublish, found.RePublish == nil || reflect.DeepEqual(found.RePublish, topology.Republish(bucket))},
		{"SubjectTransform", "none", found.SubjectTransform, found.SubjectTransform == nil},
	} {
		if !f.holds {
			return &ConfigError{Bucket: bucket, Field: f.field, Expected: fmt.Sprint(f.expected), Found: fmt.Sprint(f.found)}
		}
	}
	return nil
}
