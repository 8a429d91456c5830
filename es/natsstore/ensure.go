package natsstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/streams"
	"catenary/internal/topology"
)

// ConfigError says that a stream exists whose configuration could lose, change or reorder events.
type ConfigError struct {
	Stream          string
	Field           string
	Expected, Found string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("event stream %s has %s %s, expected %s: it is not safe to keep events in; update the stream, or keep the events in another server",
		e.Stream, e.Field, e.Found, e.Expected)
}

// Ensure creates the event stream, or checks that the one that exists is safe to keep events in. A size limit that is
// lower than asked for is raised; a higher one stays, since lowering a limit can't make room. The time for which message ids
// are kept is set. It gives a [*ConfigError] for a stream that is not safe, and errors marked [es.ErrFull] or
// [es.ErrUnavailable].
func Ensure(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrap(err, "event stream")
	}
	want := topology.Events(options)
	stream, err := js.Stream(ctx, want.Name)
	if isCode(err, jetstream.JSErrCodeStreamNotFound) {
		stream, err = streams.Create(ctx, js, want)
	}
	if err != nil {
		return ensureError(errors.Wrapf(err, "create event stream %s", want.Name))
	}
	found := stream.CachedInfo().Config
	raised := found
	raised.Duplicates = want.Duplicates
	if err := checkSafe(raised); err != nil {
		return err
	}
	if found.Replicas < want.Replicas {
		return &ConfigError{Stream: found.Name, Field: "Replicas", Expected: fmt.Sprint("at least ", want.Replicas), Found: fmt.Sprint(found.Replicas)}
	}
	if raised.MaxBytes >= 0 && raised.MaxBytes < want.MaxBytes {
		raised.MaxBytes = want.MaxBytes
	}
	if raised.MaxMsgSize >= 0 && raised.MaxMsgSize < want.MaxMsgSize {
		raised.MaxMsgSize = want.MaxMsgSize
	}
	if raised.MaxBytes == found.MaxBytes && raised.MaxMsgSize == found.MaxMsgSize && raised.Duplicates == found.Duplicates {
		return nil
	}
	if _, err := js.UpdateStream(ctx, raised); err != nil {
		return ensureError(errors.Wrapf(err, "set the limits of event stream %s to %d bytes, %d a message, ids kept for %v", found.Name, raised.MaxBytes, raised.MaxMsgSize, raised.Duplicates))
	}
	return nil
}

// checkSafe compares what events rest on: nothing is dropped, deleted, rewritten or taken in by another way, whole appends
// are atomic, and reads come from the leader.
func checkSafe(found jetstream.StreamConfig) error {
	want := topology.Events(topology.Options{})
	for _, f := range []struct {
		field           string
		expected, found any
		holds           bool
	}{
		{"Subjects", want.Subjects, found.Subjects, slices.Equal(want.Subjects, found.Subjects)},
		{"Retention", want.Retention, found.Retention, found.Retention == want.Retention},
		{"Discard", want.Discard, found.Discard, found.Discard == want.Discard},
		{"Storage", want.Storage, found.Storage, found.Storage == want.Storage},
		{"PersistMode", want.PersistMode, found.PersistMode, found.PersistMode == want.PersistMode},
		{"MaxMsgs", "no limit", found.MaxMsgs, found.MaxMsgs <= 0},
		{"MaxMsgsPerSubject", "no limit", found.MaxMsgsPerSubject, found.MaxMsgsPerSubject <= 0},
		{"MaxAge", "no limit", found.MaxAge, found.MaxAge == 0},
		{"MaxBytes", "a limit", found.MaxBytes, found.MaxBytes > 0},
		{"FirstSeq", "1", found.FirstSeq, found.FirstSeq <= 1},
		// Ids kept for longer cost memory by the second, and a start that reads all of them.
		{"Duplicates", want.Duplicates, found.Duplicates, found.Duplicates <= want.Duplicates},
		{"DenyDelete", true, found.DenyDelete, found.DenyDelete},
		{"DenyPurge", true, found.DenyPurge, found.DenyPurge},
		{"AllowRollup", false, found.AllowRollup, !found.AllowRollup},
		{"AllowMsgTTL", false, found.AllowMsgTTL, !found.AllowMsgTTL},
		{"AllowMsgSchedules", false, found.AllowMsgSchedules, !found.AllowMsgSchedules},
		{"AllowMsgCounter", false, found.AllowMsgCounter, !found.AllowMsgCounter},
		{"SubjectDeleteMarkerTTL", "none", found.SubjectDeleteMarkerTTL, found.SubjectDeleteMarkerTTL == 0},
		{"AllowAtomicPublish", true, found.AllowAtomicPublish, found.AllowAtomicPublish},
		{"AllowDirect", false, found.AllowDirect, !found.AllowDirect},
		{"NoAck", false, found.NoAck, !found.NoAck},
		{"Sealed", false, found.Sealed, !found.Sealed},
		{"Mirror", "none", found.Mirror, found.Mirror == nil},
		{"Sources", "none", len(found.Sources), len(found.Sources) == 0},
		{"SubjectTransform", "none", found.SubjectTransform, found.SubjectTransform == nil},
	} {
		if !f.holds {
			return &ConfigError{Stream: found.Name, Field: f.field, Expected: fmt.Sprint(f.expected), Found: fmt.Sprint(f.found)}
		}
	}
	return nil
}
