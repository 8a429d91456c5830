package natskv_test

import (
	"log/slog"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/internal/topology"
)

// TestMirrorIsRead reads a bucket where people do: as a copy in an account of their own, where no put is taken.
func TestMirrorIsRead(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	server, err := embedded.Start(ctx, embedded.Config{
		StoreDir: t.TempDir(), Durability: embedded.DurabilityInterval, MaxStoreBytes: 4 << 30, EventStoreBytes: 64 << 20, BucketBytes: 64 << 20,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(bounded(t)); err != nil {
			t.Error(err)
		}
	})
	ledger, err := server.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ledger.Close)
	options := topology.Options{BucketBytes: 64 << 20}
	for _, name := range topology.ChainBuckets() {
		if err := natskv.Ensure(ctx, ledger, topology.Bucket(name, options)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []jetstream.StreamConfig{topology.Actors(options), topology.Views(options)} {
		if err := natskv.Ensure(ctx, ledger, c); err != nil {
			t.Fatal(err)
		}
	}
	origin, err := natskv.Open(ctx, ledger, topology.BucketNodes)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, origin, 700, "n1", "n2", "n3")
	if err := server.EnsureMirrors(ctx); err != nil {
		t.Fatal(err)
	}
	people, err := nats.Connect(server.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(people.Close)
	mirror, err := natskv.Open(ctx, people, topology.BucketNodes)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range mirror.Follow(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Revision == 700 {
			break
		}
	}
	if diff := cmp.Diff(collect(t, origin.All(ctx, 0)), collect(t, mirror.All(ctx, 0))); diff != "" {
		t.Errorf("origin and mirror differ (-origin +mirror):\n%.2000s", diff)
	}
	if got := collect(t, mirror.History(ctx, "n2")); len(got) != 233 {
		t.Errorf("%d values of n2 in the mirror", len(got))
	}
	if page, err := mirror.Page(ctx, "", "n1", 1); err != nil || len(page) != 1 || page[0].Key != "n2" {
		t.Errorf("page %+v, %v", page, err)
	}
	want, err := project.Digest(ctx, origin, 700)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := project.Digest(ctx, mirror, 700); err != nil || got != want {
		t.Errorf("digest of the mirror %s, %v, of the origin %s", got, err, want)
	}
	if err := es.Wait(ctx, mirror.Put(ctx, 700, "n1", []byte("forged"), metaOf(701))); !errors.IsAny(err, es.ErrUnavailable, es.ErrUnclear, es.ErrConflict) {
		t.Errorf("a put to the mirror: %v", err)
	}
	for _, b := range []*natskv.Bucket{origin, mirror} {
		if s, err := b.State(ctx); err != nil || s.Last != 700 {
			t.Errorf("after a put to the mirror: %+v, %v", s, err)
		}
	}
}
