package natsstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

func TestEnsureCreatesOnce(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	for range 2 {
		if err := natsstore.Ensure(t.Context(), nc, topology.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	found := stream(t, nc).CachedInfo().Config
	if !found.DenyDelete || !found.DenyPurge || !found.AllowAtomicPublish || found.MaxBytes != topology.DefaultEventStoreBytes {
		t.Errorf("the stream is %+v", found)
	}
}

func TestEnsureRaisesLimitsAndNeverLowersThem(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	for _, c := range []struct{ asked, want int64 }{{1 << 20, 1 << 20}, {8 << 20, 8 << 20}, {2 << 20, 8 << 20}} {
		if err := natsstore.Ensure(t.Context(), nc, topology.Options{EventStoreBytes: c.asked}); err != nil {
			t.Fatal(err)
		}
		if found := stream(t, nc).CachedInfo().Config.MaxBytes; found != c.want {
			t.Errorf("asked for %d bytes, the limit is %d, want %d", c.asked, found, c.want)
		}
	}
	changeStream(t, nc, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1024 })
	if err := natsstore.Ensure(t.Context(), nc, topology.Options{}); err != nil {
		t.Fatal(err)
	}
	if found := stream(t, nc).CachedInfo().Config.MaxMsgSize; found != topology.MaxEventBytes {
		t.Errorf("the limit of a message is %d", found)
	}
}

// A limit that the server's store has no room for is told from a server that does not answer: nobody waits for it to change.
func TestEnsureSaysThatTheStoreIsTooSmall(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	if err := natsstore.Ensure(t.Context(), nc, topology.Options{EventStoreBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := natsstore.EnsureSnapshots(t.Context(), nc, topology.Options{BucketBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	tooLarge := topology.Options{EventStoreBytes: 1 << 60, BucketBytes: 1 << 60}
	for what, err := range map[string]error{
		"events":    natsstore.Ensure(t.Context(), nc, tooLarge),
		"snapshots": natsstore.EnsureSnapshots(t.Context(), nc, tooLarge),
	} {
		if !errors.Is(err, es.ErrFull) || errors.Is(err, es.ErrUnavailable) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// TestUnsafeStreams lists what would lose, change or reorder events: neither Ensure nor Open takes such a stream, and
// both name the field.
func TestUnsafeStreams(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	cases := []struct {
		field  string
		change func(*jetstream.StreamConfig)
	}{
		{"Subjects", func(c *jetstream.StreamConfig) { c.Subjects = []string{"evt.node.>"} }},
		{"Subjects", func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "more.>") }},
		{"Retention", func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }},
		{"Discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"Storage", func(c *jetstream.StreamConfig) { c.Storage, c.MaxBytes = jetstream.MemoryStorage, 1<<20 }},
		{"PersistMode", func(c *jetstream.StreamConfig) {
			c.PersistMode = jetstream.AsyncPersistMode
			c.AllowAtomicPublish = false // the server takes only one of them
		}},
		{"MaxMsgs", func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }},
		{"MaxMsgsPerSubject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }},
		{"MaxAge", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"MaxBytes", func(c *jetstream.StreamConfig) { c.MaxBytes = -1 }},
		{"FirstSeq", func(c *jetstream.StreamConfig) { c.FirstSeq = 100 }},
		{"DenyDelete", func(c *jetstream.StreamConfig) { c.DenyDelete = false }},
		{"DenyPurge", func(c *jetstream.StreamConfig) { c.DenyPurge = false }},
		{"AllowMsgTTL", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
		{"AllowAtomicPublish", func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }},
		{"AllowDirect", func(c *jetstream.StreamConfig) { c.AllowDirect = true }},
		{"NoAck", func(c *jetstream.StreamConfig) { c.NoAck = true }},
		{"SubjectTransform", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "evt.>", Destination: "evt.x.>"}
		}},
	}
	for _, c := range cases {
		config := topology.Events(topology.Options{})
		c.change(&config)
		if _, err := js(t, nc).CreateStream(t.Context(), config); err != nil {
			t.Fatalf("%s: %v", c.field, err)
		}
		_, openErr := natsstore.Open(t.Context(), nc, natsstore.Config{})
		for what, err := range map[string]error{"ensure": natsstore.Ensure(t.Context(), nc, topology.Options{}), "open": openErr} {
			var mismatch *natsstore.ConfigError
			if !errors.As(err, &mismatch) || mismatch.Field != c.field || !strings.Contains(err.Error(), c.field) {
				t.Errorf("%s: %s gave %v", c.field, what, err)
			}
		}
		if err := js(t, nc).DeleteStream(t.Context(), topology.EventStream); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEnsureNamesMissingReplicas(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	if err := natsstore.Ensure(t.Context(), nc, topology.Options{}); err != nil {
		t.Fatal(err)
	}
	err := natsstore.Ensure(t.Context(), nc, topology.Options{Replicas: 3})
	if err == nil || !strings.Contains(err.Error(), "3 replicas") || !strings.Contains(errors.FlattenHints(err), "the server runs alone") {
		t.Errorf("ensure gave %v, and says to do %q", err, errors.FlattenHints(err))
	}
}

func TestOpenWithoutStream(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	if _, err := natsstore.Open(t.Context(), nc, natsstore.Config{}); !errors.Is(err, es.ErrUnavailable) || !strings.Contains(err.Error(), topology.EventStream) || errors.FlattenHints(err) == "" {
		t.Errorf("open gave %v", err)
	}
	if _, err := natsstore.Open(t.Context(), nc, natsstore.Config{MaxInFlight: -1}); err == nil {
		t.Error("a window below zero was taken")
	}
}
