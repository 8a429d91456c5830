package topology

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// EventStream is the name of the stream that holds every event.
const EventStream = "CATENARY"

// Limits that apply to every stream of the system.
const (
	// DefaultEventStoreBytes bounds the event stream: about 60 million events of usual size. Set it below the disk's free
	// space: a reached limit refuses commands with a reason, a full disk makes the server time out until restarted.
	DefaultEventStoreBytes = 32 << 30
	// DefaultBucketBytes bounds each bucket.
	DefaultBucketBytes = 8 << 30
	// MaxEventBytes bounds one event with headers, well under the server's default payload limit of 1 MiB.
	MaxEventBytes = 256 << 10
	// EventDuplicates is for how long the event stream remembers message ids. The ids are there to compare with the last
	// one; that of earlier ones is not needed, but 100 ms is the shortest that the server takes.
	EventDuplicates = 100 * time.Millisecond
	// BucketHistory is how many values of one key a bucket keeps. The client's own limit is 64; the stream's is not.
	// -1 would keep all of them but then nats.go does not open the bucket.
	BucketHistory = 1_000_000
)

// Buckets of the chain, by the kind of record they hold.
const (
	BucketModules     = "chain-modules"
	BucketNodes       = "chain-nodes"
	BucketCommits     = "chain-commits"
	BucketBuilds      = "chain-builds"
	BucketPublished   = "chain-published"
	BucketAssignments = "chain-assignments"
	BucketFreezes     = "chain-freezes"
	BucketMerges      = "chain-merges"
	BucketTracks      = "chain-tracks"
	BucketStrategies  = "chain-strategies"
	BucketRollouts    = "chain-rollouts"
	BucketSteps       = "chain-steps"
	// BucketBackfill holds values that were added to a key's history after the fact (key: <kind>.<key of the record>). They
	// stand apart so that the newest value of a record's own key is always the one that stands.
	BucketBackfill = "chain-backfill"
)

// BucketViews holds, for each view, which generation of its bucket is read.
const BucketViews = "chain-views"

// Buckets that no projector writes.
const (
	// BucketActors maps opaque actor ids to names. It is the one mutable record: emptying an entry erases a person.
	BucketActors = "catenary-actors"
	// ObjectsSnapshots is the object bucket that holds what folding the events gave, for the next start of a writer.
	ObjectsSnapshots = "catenary-snapshots"
	// BucketMarks holds how far each view has read, for views that seldom write a value.
	BucketMarks = "catenary-marks"
	// BucketBaton holds who is the active one of several equal processes.
	BucketBaton = "catenary-baton"
	// BatonWriter is its key for the writers.
	BatonWriter = "writer"
	// BucketTiles holds the full tiles of the Merkle tree over the events (key: <level>.<number>).
	BucketTiles = "catenary-tiles"
)

// ChainBuckets lists the buckets that projectors derive from the events.
func ChainBuckets() []string {
	return []string{
		BucketModules, BucketNodes, BucketCommits, BucketBuilds,
		BucketPublished, BucketAssignments, BucketFreezes,
		BucketMerges, BucketTracks, BucketStrategies, BucketRollouts, BucketSteps, BucketBackfill,
	}
}

// MirroredBuckets lists the buckets that people and tools read in their own account.
func MirroredBuckets() []string { return append(ChainBuckets(), BucketActors, BucketViews) }

// Options vary the streams with the place they live in.
type Options struct {
	// Replicas is by the size of the cluster: see [ReplicasOf]. Zero means 1.
	Replicas int
	// EventStoreBytes bounds the event stream. Zero means DefaultEventStoreBytes.
	EventStoreBytes int64
	// BucketBytes bounds each bucket. Zero means DefaultBucketBytes.
	BucketBytes int64
}

func (o Options) replicas() int { return max(o.Replicas, 1) }

// ClusterSizes are the numbers of servers that a chain may have: an odd one, since a fourth server survives no more losses than three do, and at most
// five, since no stream has more replicas.
func ClusterSizes() []int { return []int{1, 3, 5} }

// ReplicasOf says how many servers of so many are to hold each stream: as many as there are, when that is an odd number up to five.
func ReplicasOf(servers int) int {
	replicas := 1
	for _, size := range ClusterSizes() {
		if size <= servers {
			replicas = size
		}
	}
	return replicas
}

func orDefault(v, def int64) int64 {
	if v > 0 {
		return v
	}
	return def
}

// Events configures the event stream: nothing in it can be deleted or purged, and when it is full it refuses the new
// instead of dropping the old.
func Events(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               EventStream,
		Description:        "Catenary: every event, in order. Appended by the writer only.",
		Subjects:           []string{EventPrefix + ".>"},
		Retention:          jetstream.LimitsPolicy,
		Discard:            jetstream.DiscardNew,
		Storage:            jetstream.FileStorage,
		Replicas:           o.replicas(),
		MaxBytes:           orDefault(o.EventStoreBytes, DefaultEventStoreBytes),
		MaxMsgSize:         MaxEventBytes,
		Duplicates:         EventDuplicates,
		DenyDelete:         true,
		DenyPurge:          true,
		AllowAtomicPublish: true,
		// Reads by sequence must not come from a follower that lags behind our own acknowledged append.
		AllowDirect: false,
	}
}

// WorkStreams names the streams that the processes work with besides the event stream and the buckets of views. Each is made at a start, and stays.
func WorkStreams() []string {
	return []string{
		InboxStream, ParkedStream, RefusedStream, CheckpointStream, LogsStream,
		BucketStream(BucketReceipts), BucketStream(BucketActors), BucketStream(BucketViews), BucketStream(BucketMarks), BucketStream(BucketBaton), BucketStream(BucketTiles),
		ObjectsStream(ObjectsSnapshots), ObjectsStream(ObjectsArtifacts),
	}
}

// BucketStream is the name of the stream behind a bucket.
func BucketStream(bucket string) string { return "KV_" + bucket }

// BucketSubject is the subject of one key of a bucket.
func BucketSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// Bucket configures the stream behind a chain bucket. nats.go opens it as a key-value bucket, but "no key is removed" is
// enforced by the server. On one server it persists asynchronously: what a crash loses of it is derived again.
func Bucket(bucket string, o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              BucketStream(bucket),
		Description:       "Catenary: " + bucket + ", derived from the events. Written by the projector only.",
		Subjects:          []string{BucketSubject(bucket, ">")},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: BucketHistory,
		MaxBytes:          orDefault(o.BucketBytes, DefaultBucketBytes),
		DenyDelete:        true,
		DenyPurge:         true,
		AllowDirect:       false,
		// Values that are at hand together are put together.
		AllowBatchPublish: true,
	}
	if c.Replicas == 1 {
		c.PersistMode = jetstream.AsyncPersistMode
	}
	return c
}

// Actors configures the stream behind the actor directory. It keeps one value per key, so that overwriting an entry
// leaves nothing of the person in it.
func Actors(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              BucketStream(BucketActors),
		Description:       "Catenary: names behind opaque actor ids. Written by the writer only.",
		Subjects:          []string{BucketSubject(BucketActors, ">")},
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: 1,
		MaxBytes:          orDefault(0, 1<<30),
		AllowRollup:       false,
		AllowDirect:       false,
	}
}

// Marks configures the stream behind the projector's marks: one value per view, overwritten.
func Marks(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              BucketStream(BucketMarks),
		Description:       "Catenary: how far each view has read. Written by the projector only; safe to lose.",
		Subjects:          []string{BucketSubject(BucketMarks, ">")},
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: 1,
		MaxBytes:          64 << 20,
		AllowDirect:       false,
	}
}

// Baton configures the stream behind the batons: one small value per role, overwritten a few times a second. On one server it
// persists asynchronously, so that renewing costs no sync; nothing rests on it.
func Baton(o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              BucketStream(BucketBaton),
		Description:       "Catenary: which process is the active one. Written by the processes themselves; safe to lose.",
		Subjects:          []string{BucketSubject(BucketBaton, ">")},
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: 1,
		MaxBytes:          1 << 20,
		AllowDirect:       false,
	}
	if c.Replicas == 1 {
		c.PersistMode = jetstream.AsyncPersistMode
	}
	return c
}

// ObjectsStream is the name of the stream behind an object bucket.
func ObjectsStream(bucket string) string { return "OBJ_" + bucket }

// ObjectMetaSubject is the subject of what is said of an object, by its name as the bucket encodes it; ObjectChunkSubject is that
// of its content, by the id of its upload.
func ObjectMetaSubject(bucket, name string) string    { return "$O." + bucket + ".M." + name }
func ObjectChunkSubject(bucket, upload string) string { return "$O." + bucket + ".C." + upload }

// Snapshots configures the stream behind the snapshots: nats.go opens it as an object bucket. What is lost of it is made again,
// so it persists asynchronously on one server.
func Snapshots(o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        ObjectsStream(ObjectsSnapshots),
		Description: "Catenary: the writer's world at an event, for a quick start. Written by the writer only; safe to lose.",
		Subjects:    []string{ObjectChunkSubject(ObjectsSnapshots, ">"), ObjectMetaSubject(ObjectsSnapshots, ">")},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		Storage:     jetstream.FileStorage,
		Replicas:    o.replicas(),
		MaxBytes:    orDefault(o.BucketBytes, DefaultBucketBytes),
		AllowRollup: true,
		AllowDirect: false,
	}
	if c.Replicas == 1 {
		c.PersistMode = jetstream.AsyncPersistMode
	}
	return c
}

// Mirror configures the ops account's read copy of a bucket. It persists asynchronously: a synced mirror follows at a
// twentieth of the speed, and a lost tail is fetched again from its origin.
func Mirror(bucket string, o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        BucketStream(bucket),
		Description: "Catenary: read copy of " + bucket + ".",
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    o.replicas(),
		MaxBytes:    orDefault(o.BucketBytes, DefaultBucketBytes),
		AllowDirect: false,
		Mirror: &jetstream.StreamSource{
			Name: BucketStream(bucket),
			External: &jetstream.ExternalStream{
				APIPrefix:     LedgerAPIPrefix,
				DeliverPrefix: MirrorDeliverPrefix,
			},
		},
	}
	c.MaxMsgsPerSubject = BucketHistory
	switch bucket {
	case BucketActors:
		c.MaxMsgsPerSubject = 1
	case BucketViews:
		c.MaxMsgsPerSubject, c.MaxBytes = 1, viewsBytes
	default:
		c.DenyDelete, c.DenyPurge = true, true
	}
	if c.Replicas == 1 {
		c.PersistMode = jetstream.AsyncPersistMode
	}
	return c
}
