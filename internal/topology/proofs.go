package topology

import (
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// CheckpointStream holds signed checkpoints of the record.
	CheckpointStream = "CATENARY_CHECKPOINTS"
	// CheckpointSubject is the one subject they are stored under.
	CheckpointSubject = "checkpoint"
	// CheckpointBytes bounds the checkpoints: about 60,000, a week of one every ten seconds and years of a usual chain. Over it the oldest
	// go, whose word every later one repeats.
	CheckpointBytes = 32 << 20
)

// Checkpoints configures the stream of checkpoints. It stands apart from the events, so that a stream of events that was cut short
// or replaced does not take along what was signed over it.
func Checkpoints(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        CheckpointStream,
		Description: "Catenary: signed checkpoints of the record. Written by the projector only.",
		Subjects:    []string{CheckpointSubject},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		Storage:     jetstream.FileStorage,
		Replicas:    o.replicas(),
		MaxBytes:    CheckpointBytes,
		DenyDelete:  true,
		DenyPurge:   true,
		AllowDirect: false,
	}
}

// Tiles configures the stream behind the tiles of the Merkle tree: 32 bytes for each event. They are derived, so on one server they
// persist asynchronously.
func Tiles(o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              BucketStream(BucketTiles),
		Description:       "Catenary: the Merkle tree over the events. Written by the projector only; made anew when lost.",
		Subjects:          []string{BucketSubject(BucketTiles, ">")},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: 1,
		MaxBytes:          orDefault(o.BucketBytes, DefaultBucketBytes),
		AllowDirect:       false,
	}
	if c.Replicas == 1 {
		c.PersistMode = jetstream.AsyncPersistMode
	}
	return c
}
