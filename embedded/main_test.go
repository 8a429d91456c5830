package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"catenary/embedded"
	"catenary/es/estest"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

// patience bounds every wait of a test. It is long because a test that reaches it has failed.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimStore); dir != "" {
		if err := runVictim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(limitedStore); dir != "" {
		if err := runLimited(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// In a cluster, a node may be stopped while a mirror on another waits for its answer, and the server waits on for up to half a
	// minute after its own stop. TestStartAndStop makes no such exception for a single node.
	const stream = "github.com/nats-io/nats-server/v2/server.(*stream)."
	estest.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(stream+"setupMirrorConsumer.func3"),
		goleak.IgnoreAnyFunction(stream+"tryDeleteSourcingConsumer.func1"))
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// logTo shows a server's warnings in the output of a failed test.
func logTo(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// start runs a server until the test ends.
func start(t *testing.T, c embedded.Config) *embedded.Server {
	t.Helper()
	if c.StoreDir == "" {
		c.StoreDir = t.TempDir()
	}
	if c.Logger == nil {
		c.Logger = logTo(t)
	}
	s, err := embedded.Start(testContext(t), c)
	if err != nil {
		t.Fatalf("start: %+v", err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("stop: %+v", err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%+v", err)
	}
}

// bus is what a server and a cluster have in common.
type bus interface {
	ClientURL() string
	Options() topology.Options
	Ledger(...nats.Option) (*nats.Conn, error)
	Mirrors(...nats.Option) (*nats.Conn, error)
	EnsureMirrors(context.Context) error
}

// ledgerOf connects to the ledger account and creates what is missing there, as the writer and the projector do.
func ledgerOf(t *testing.T, b bus) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := b.Ledger()
	check(t, err)
	js := jetstreamOf(t, nc)
	configs := []jetstream.StreamConfig{topology.Events(b.Options()), topology.Actors(b.Options()), topology.Views(b.Options()), topology.Marks(b.Options()), topology.Baton(b.Options())}
	for _, bucket := range topology.ChainBuckets() {
		configs = append(configs, topology.Bucket(bucket, b.Options()))
	}
	for _, c := range configs {
		if _, err := streams.Create(testContext(t), js, c); err != nil {
			t.Fatalf("create %s: %+v", c.Name, err)
		}
	}
	return nc, js
}

func jetstreamOf(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	check(t, err)
	return js
}

// dial connects over TCP as a person does.
func dial(t *testing.T, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append([]nats.Option{nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, opts...)...)
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	t.Cleanup(func() {
		nc.Close()
	})
	return nc
}

// put writes values 1 to count to one key of a bucket of the ledger and returns the bucket's last sequence.
func put(t *testing.T, js jetstream.JetStream, bucket, key string, count int) uint64 {
	t.Helper()
	kv, err := js.KeyValue(testContext(t), bucket)
	check(t, err)
	var last uint64
	for i := range count {
		eventually(t, "a server that knows who keeps the bucket", func() bool {
			last, err = kv.Put(testContext(t), key, fmt.Appendf(nil, `{"n":%d}`, i+1))
			return !errors.IsAny(err, nats.ErrNoResponders, jetstream.ErrNoStreamResponse)
		})
		check(t, err)
	}
	return last
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// await takes one value from a channel.
func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}
