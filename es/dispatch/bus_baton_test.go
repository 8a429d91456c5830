package dispatch_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/dispatch"
	"catenary/es/estest"
)

const batonBucket = "baton"

// stadium gives a bucket for the baton, and a connection.
func stadium(t *testing.T) (*nats.Conn, jetstream.KeyValue) {
	t.Helper()
	nc := estest.Server(t, false).Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: batonBucket})
	if err != nil {
		t.Fatal(err)
	}
	return nc, kv
}

func openBaton(t *testing.T, nc *nats.Conn, name string, seize bool) *dispatch.Baton {
	t.Helper()
	b, err := dispatch.OpenBaton(t.Context(), dispatch.BatonConfig{
		Conn: nc, Bucket: batonBucket, Key: "writer", Name: name, Seize: seize, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func take(t *testing.T, b *dispatch.Baton) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	defer cancel()
	start := time.Now()
	if err := b.Take(ctx); err != nil {
		t.Fatalf("not taken: %v", err)
	}
	return time.Since(start)
}

// keep keeps a baton in the background. Drop gives it up; lost gives how keeping ended.
func keep(t *testing.T, b *dispatch.Baton) (drop func(), lost <-chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- b.Keep(ctx) }()
	return cancel, ended
}

func TestBatonPassesOn(t *testing.T) {
	t.Parallel()
	nc, kv := stadium(t)
	first, second := openBaton(t, nc, "first", false), openBaton(t, nc, "second", false)
	take(t, first)
	drop, ended := keep(t, first)
	taken := make(chan error, 1)
	go func() { taken <- second.Take(t.Context()) }()
	// A holder that renews keeps it for longer than an expiry, also when somebody deletes the value.
	select {
	case <-taken:
		t.Fatal("the baton was taken from a holder that renews it")
	case <-time.After(1200 * time.Millisecond):
	}
	drop()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the one who gave it up was told %v", err)
	}
	// Nobody renews it now: it expires.
	third := openBaton(t, nc, "third", false)
	if d := take(t, third); d < 500*time.Millisecond {
		t.Errorf("an expired baton was taken after %v", d)
	}
	// A value that nobody of ours wrote expires too.
	if _, err := kv.PutString(t.Context(), "writer", "not a baton"); err != nil {
		t.Fatal(err)
	}
	take(t, openBaton(t, nc, "fourth", false))
}

func TestBatonIsLost(t *testing.T) {
	t.Parallel()
	nc, kv := stadium(t)
	first := openBaton(t, nc, "first", false)
	take(t, first)
	_, ended := keep(t, first)
	if err := kv.Delete(t.Context(), "writer"); err != nil {
		t.Fatal(err)
	}
	// The holder writes it again.
	w, err := kv.Watch(t.Context(), "writer", jetstream.IgnoreDeletes())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.Updates() {
		if e != nil {
			break
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("a deleted value ended the turn: %v", err)
	default:
	}
	take(t, openBaton(t, nc, "alone", true))
	select {
	case err := <-ended:
		if !errors.Is(err, dispatch.ErrBatonLost) {
			t.Errorf("the one whose baton was taken was told %v", err)
		}
	case <-time.After(answerLimit):
		t.Fatal("the one whose baton was taken does not know")
	}
}

func TestBatonWaitsWhileItCannotSee(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: batonBucket}); err != nil {
		t.Fatal(err)
	}
	first, second := openBaton(t, nc, "first", false), openBaton(t, bus.Connect(t), "second", false)
	take(t, first)
	_, ended := keep(t, first)
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan error, 1)
	go func() { taken <- second.Take(ctx) }()
	bus.Stop()
	bus.Start(t)
	select {
	case err := <-ended:
		t.Errorf("a restart of the server ended the turn: %v", err)
	case err := <-taken:
		t.Errorf("a restart of the server passed the baton on: %v", err)
	case <-time.After(1500 * time.Millisecond):
	}
	cancel()
	if err := <-taken; !errors.Is(err, context.Canceled) {
		t.Errorf("one that was told to stop waiting gave %v", err)
	}
}
