package natsstore_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

func TestStore(t *testing.T) {
	t.Parallel()
	estest.RunStoreSuite(t, func(t *testing.T, l estest.Limits) es.Store {
		nc := estest.Server(t, false).Connect(t)
		return open(t, nc, l, natsstore.Config{})
	})
}

// The server stores batches and single messages in other ways when it syncs each write.
func TestStoreSynced(t *testing.T) {
	t.Parallel()
	estest.RunStoreSuite(t, func(t *testing.T, l estest.Limits) es.Store {
		nc := estest.Server(t, true).Connect(t)
		return open(t, nc, l, natsstore.Config{})
	})
}

// open creates the stream and opens a store on it.
func open(t testing.TB, nc *nats.Conn, l estest.Limits, config natsstore.Config) *natsstore.Store {
	t.Helper()
	if err := natsstore.Ensure(t.Context(), nc, topology.Options{EventStoreBytes: l.TotalBytes}); err != nil {
		t.Fatal(err)
	}
	if l.MessageBytes > 0 {
		changeStream(t, nc, func(c *jetstream.StreamConfig) { c.MaxMsgSize = int32(l.MessageBytes) })
	}
	s, err := natsstore.Open(t.Context(), nc, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func js(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func stream(t testing.TB, nc *nats.Conn) jetstream.Stream {
	t.Helper()
	st, err := js(t, nc).Stream(t.Context(), topology.EventStream)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func changeStream(t testing.TB, nc *nats.Conn, change func(*jetstream.StreamConfig)) {
	t.Helper()
	config := stream(t, nc).CachedInfo().Config
	change(&config)
	if _, err := js(t, nc).UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}
