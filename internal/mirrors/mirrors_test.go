package mirrors_test

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/es/natskv"
	"catenary/internal/mirrors"
	"catenary/internal/topology"
)

// aside is an account whose mirrors have not asked for their buckets yet, as after a server's restart.
type aside struct{ jetstream.JetStream }

type waiting struct{ jetstream.Stream }

func (a aside) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := a.JetStream.Stream(ctx, name)
	return waiting{s}, err
}

func (w waiting) CachedInfo() *jetstream.StreamInfo {
	info := *w.Stream.CachedInfo()
	info.Mirror = &jetstream.StreamSourceInfo{Active: -1}
	return &info
}

// TestTrueDoesNotWait has mirrors that do not follow yet. That they are true is known at once, which is all that a projector needs to go on; who wants
// to see all in them waits.
func TestTrueDoesNotWait(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), BucketBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	access := func(connect func(...nats.Option) (*nats.Conn, error)) (*nats.Conn, jetstream.JetStream) {
		nc, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		return nc, js
	}
	ledger, origins := access(server.Ledger)
	_, copies := access(server.Mirrors)
	options := server.Options()
	for _, bucket := range topology.MirroredBuckets() {
		if err := natskv.Ensure(t.Context(), ledger, topology.Bucket(bucket, options)); err != nil {
			t.Fatal(err)
		}
	}
	if err := mirrors.Over(origins, copies, options).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := mirrors.Over(origins, aside{copies}, options)
	behind, err := m.True(t.Context())
	if err != nil || len(behind) != len(topology.MirroredBuckets()) {
		t.Errorf("%d mirrors are true, with error %v", len(behind), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := m.Ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("they are waited for with %v", err)
	}
}
