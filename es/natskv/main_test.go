package natskv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/internal/topology"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// limit bounds every wait of a test. It is reached only when something is broken.
const limit = 60 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	return estest.Bounded(t, limit)
}

// small is a bucket's configuration that fits a test's disk.
func small(bucket string) jetstream.StreamConfig {
	return topology.Bucket(bucket, topology.Options{BucketBytes: 256 << 20})
}

// bucket gives a new bucket on a server of its own.
func bucket(t testing.TB) (*natskv.Bucket, *nats.Conn) {
	t.Helper()
	nc := estest.Server(t, false).Connect(t)
	return open(t, nc, small("things")), nc
}

func open(t testing.TB, nc *nats.Conn, cfg jetstream.StreamConfig) *natskv.Bucket {
	t.Helper()
	ctx := bounded(t)
	if err := natskv.Ensure(ctx, nc, cfg); err != nil {
		t.Fatal(err)
	}
	b, err := natskv.Open(ctx, nc, cfg.Name[len("KV_"):])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// metaOf is what stands beside the only value of an event.
func metaOf(sequence uint64) natskv.Meta {
	at := time.Date(2026, 1, 1, 0, 0, int(sequence), 123456789, time.UTC)
	return natskv.Meta{
		Position: natskv.Position{Sequence: sequence, Part: 1, Parts: 1},
		Source:   natskv.Source{Sequence: sequence, ID: fmt.Sprint("event-", sequence)},
		Fold:     1, Type: "thing.put.v1", Recorded: at, Effective: at, Actor: "a1",
	}
}

// fill puts n values in turn under the keys, all in flight at once, after what stands.
func fill(t testing.TB, b *natskv.Bucket, n int, keys ...string) {
	t.Helper()
	ctx := bounded(t)
	state, err := b.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pending := make([]es.Pending, n)
	for i := range n {
		revision := state.Last + uint64(i)
		pending[i] = b.Put(ctx, revision, keys[i%len(keys)], fmt.Appendf(nil, `{"n":%d}`, revision+1), metaOf(revision+1))
	}
	for i, p := range pending {
		if err := es.Wait(ctx, p); err != nil {
			t.Fatalf("put %d: %v", i+1, err)
		}
	}
}

// consumers counts what is left of reads on the server.
func consumers(t testing.TB, nc *nats.Conn, bucket string) int {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(bounded(t), topology.BucketStream(bucket))
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Consumers
}
