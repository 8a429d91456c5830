package streams

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// ConfigError says that a stream exists whose configuration could lose, change or reorder what is kept in it.
type ConfigError struct {
	Stream string
	// Keeps says what is kept in it, such as events.
	Keeps           string
	Field           string
	Expected, Found string
}

func (e *ConfigError) Error() string {
	if e.Field == restoreField {
		return fmt.Sprintf("stream %s has %s %s: not all %s are in it; restore the same backup again, which goes on where it stopped", e.Stream, e.Field, e.Found, e.Keeps)
	}
	if e.Field == replicasField {
		return fmt.Sprintf("stream %s has %s replicas, expected %s: the server gives no more to one that it persists asynchronously; take a backup, and restore it onto the cluster (docs/guides/cluster.md)",
			e.Stream, e.Found, e.Expected)
	}
	return fmt.Sprintf("stream %s has %s %s, expected %s: it is not safe to keep %s in; update the stream, or take a backup without its writer (catenary backup --store or --config), and restore it onto another server",
		e.Stream, e.Field, e.Found, e.Expected, e.Keeps)
}

// RestoringKey is the key of a stream's metadata that stands there while a backup is being restored into it. What is in the stream is not all
// of it then.
const RestoringKey = "catenary-restoring"

// Check compares a stream with the one that is wanted in all that what is kept in it rests on: nothing is dropped, deleted, rewritten or
// taken in by another way than is wanted, and reads come from the leader. A stream may do more for safety than is wanted, and have more
// room. It gives a [*ConfigError].
func Check(keeps string, want, found jetstream.StreamConfig) error {
	if all := Dangers(keeps, want, found); len(all) > 0 {
		return all[0]
	}
	return nil
}

// CheckRestored says only whether all is in a stream that is to be: that no restore is at work, or the one that is wanted. It gives a [*ConfigError].
func CheckRestored(keeps string, want, found jetstream.StreamConfig) error {
	for _, d := range Dangers(keeps, want, found) {
		if d.Field == restoreField {
			return d
		}
	}
	return nil
}

// Dangers gives everything that [Check] finds, a field each.
func Dangers(keeps string, want, found jetstream.StreamConfig) []*ConfigError {
	var all []*ConfigError
	for _, f := range []struct {
		field           string
		expected, found any
		holds           bool
	}{
		{restoreField, orNone(want.Metadata[RestoringKey]), orNone(found.Metadata[RestoringKey]), found.Metadata[RestoringKey] == want.Metadata[RestoringKey]},
		{"Subjects", want.Subjects, found.Subjects, slices.Equal(want.Subjects, found.Subjects)},
		{"Retention", want.Retention, found.Retention, found.Retention == want.Retention},
		{"Discard", want.Discard, found.Discard, found.Discard == want.Discard},
		{"Storage", want.Storage, found.Storage, found.Storage == want.Storage},
		{replicasField, fmt.Sprint("at least ", want.Replicas), found.Replicas, found.Replicas >= want.Replicas},
		{"PersistMode", want.PersistMode, found.PersistMode, found.PersistMode == want.PersistMode || found.PersistMode == jetstream.DefaultPersistMode},
		{"MaxMsgsPerSubject", limit(want.MaxMsgsPerSubject), limit(found.MaxMsgsPerSubject), max(found.MaxMsgsPerSubject, 0) == max(want.MaxMsgsPerSubject, 0)},
		{"MaxMsgs", "no limit", found.MaxMsgs, found.MaxMsgs <= 0},
		{"MaxAge", want.MaxAge, found.MaxAge, found.MaxAge == want.MaxAge},
		// Without a limit a full disk takes the server down.
		{"MaxBytes", "a limit", found.MaxBytes, found.MaxBytes > 0},
		// Larger ones would be refused, one by one, with no other sign.
		{"MaxMsgSize", limit(int64(want.MaxMsgSize)), found.MaxMsgSize, found.MaxMsgSize <= 0 || want.MaxMsgSize > 0 && found.MaxMsgSize >= want.MaxMsgSize},
		{"FirstSeq", "1", found.FirstSeq, found.FirstSeq <= 1},
		// Ids kept for longer cost memory by the second, and a start that reads all of them.
		{"Duplicates", want.Duplicates, found.Duplicates, want.Duplicates == 0 || found.Duplicates <= want.Duplicates},
		{"DenyDelete", want.DenyDelete, found.DenyDelete, found.DenyDelete == want.DenyDelete},
		{"DenyPurge", want.DenyPurge, found.DenyPurge, found.DenyPurge == want.DenyPurge},
		{"AllowRollup", want.AllowRollup, found.AllowRollup, found.AllowRollup == want.AllowRollup},
		{"AllowDirect", want.AllowDirect, found.AllowDirect, found.AllowDirect == want.AllowDirect},
		{"AllowAtomicPublish", want.AllowAtomicPublish, found.AllowAtomicPublish, found.AllowAtomicPublish || !want.AllowAtomicPublish},
		{"AllowMsgTTL", false, found.AllowMsgTTL, !found.AllowMsgTTL},
		{"AllowMsgSchedules", false, found.AllowMsgSchedules, !found.AllowMsgSchedules},
		{"AllowMsgCounter", false, found.AllowMsgCounter, !found.AllowMsgCounter},
		{"SubjectDeleteMarkerTTL", "none", found.SubjectDeleteMarkerTTL, found.SubjectDeleteMarkerTTL == 0},
		{"NoAck", false, found.NoAck, !found.NoAck},
		{"Sealed", false, found.Sealed, !found.Sealed},
		{"Mirror", "none", found.Mirror, found.Mirror == nil},
		{"Sources", "none", len(found.Sources), len(found.Sources) == 0},
		{"RePublish", want.RePublish, found.RePublish, found.RePublish == nil || reflect.DeepEqual(found.RePublish, want.RePublish)},
		{"SubjectTransform", "none", found.SubjectTransform, found.SubjectTransform == nil},
	} {
		if !f.holds {
			all = append(all, &ConfigError{Stream: found.Name, Keeps: keeps, Field: f.field, Expected: fmt.Sprint(f.expected), Found: fmt.Sprint(f.found)})
		}
	}
	return all
}

// replicasField is the field of which a stream is given what it lacks, unless the server can't.
const replicasField = "Replicas"

// restoreField names what is no field of the configuration.
const restoreField = "a restore"

// orNone shows what is not there.
func orNone(text string) string {
	if text == "" {
		return "none under way"
	}
	return "under way that was not ended (" + text + ")"
}

// limit shows a number that is no limit when it is not above zero.
func limit(n int64) any {
	if n <= 0 {
		return "no limit"
	}
	return n
}
