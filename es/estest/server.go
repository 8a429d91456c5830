package estest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startTimeout bounds how long a server may take until it accepts connections; it takes milliseconds.
const startTimeout = 20 * time.Second

// maxStoreBytes is what the limits of a test's streams may add up to. The default is three quarters of what is free, which on a small
// disk is less than the one limit of an event stream; a test fills neither.
const maxStoreBytes = 1 << 40

// Bus is a real server with JetStream in this process, on a random port of the loopback interface. Its store outlives
// [Bus.Stop], so that a restart can be tested.
type Bus struct {
	options server.Options
	server  *server.Server
}

// Server starts a bus without accounts, for tests of what stands directly on JetStream. With sync every write is flushed
// to the disk before it is acknowledged. The bus stops when the test ends.
func Server(t testing.TB, sync bool) *Bus {
	t.Helper()
	b := &Bus{options: server.Options{
		ServerName: "estest", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		JetStream: true, JetStreamMaxStore: maxStoreBytes, StoreDir: t.TempDir(), SyncAlways: sync, NoSigs: true, NoLog: true,
	}}
	b.Start(t)
	t.Cleanup(b.Stop)
	return b
}

// Start starts a stopped bus again: same store, same address.
func (b *Bus) Start(t testing.TB) {
	t.Helper()
	options := b.options
	s, err := server.NewServer(&options)
	if err != nil {
		t.Fatalf("make the server: %v", err)
	}
	s.Start()
	b.server = s
	if !s.ReadyForConnections(startTimeout) {
		t.Fatalf("the server is not ready after %v", startTimeout)
	}
	b.options.Port = options.Port
}

// Stop stops the bus and waits until it has stopped. Stopping it twice is harmless.
func (b *Bus) Stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// URL is where clients connect.
func (b *Bus) URL() string { return b.server.ClientURL() }

// StoreDir is where the bus keeps its streams. What is changed there while it is stopped is damage.
func (b *Bus) StoreDir() string { return b.options.StoreDir }

// Connect gives a connection that is closed when the test ends.
func (b *Bus) Connect(t testing.TB, options ...nats.Option) *nats.Conn {
	t.Helper()
	defaults := []nats.Option{nats.Name(t.Name()), nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0)}
	nc, err := nats.Connect(b.URL(), append(defaults, options...)...)
	if err != nil {
		t.Fatalf("connect to %s: %v", b.URL(), err)
	}
	t.Cleanup(nc.Close)
	return nc
}
