package integration

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/es"
	"catenary/internal/topology"
)

// damage changes a stopped chain by hand, in copies of its store, and demands that what was changed is named.
func damage(t *testing.T, store string, p pair) {
	key := es.Key(p.environment, p.app)
	t.Run("case A14: a bucket's value", func(t *testing.T) {
		mine := copyStore(t, store)
		server := openStore(t, mine)
		forgeValue(t, server, key)
		closeStore(t, server)
		c := on(t, up(t, mine, "127.0.0.1:0", "interval"))
		if got := c.must(1, "verify", "-o", "name"); !strings.Contains(got.out, "chain-assignments "+key+"\n") {
			t.Errorf("verify names %s, want %s", got.out, key)
		}
	})
	t.Run("an event", func(t *testing.T) {
		mine := copyStore(t, store)
		server := openStore(t, mine)
		sequence := forgeEvent(t, server, key)
		named := fmt.Sprintf("event %d on evt.assignment.%s was changed", sequence, key)
		closeStore(t, server)
		if got := (tool{t: t}).must(1, "verify", "--store", mine); !strings.Contains(got.out, named) {
			t.Errorf("verify says %s, want %q in it", got.out, named)
		}
		// No writer decides on a record that was changed.
		if process, err := startChain(mine, "127.0.0.1:0", "interval"); err == nil {
			process.kill()
			t.Error("a writer started on a changed record")
		} else if !strings.Contains(err.Error(), named) {
			t.Errorf("catenary up says %v, want %q in it", err, named)
		}
	})
}

// copyStore gives a copy of a stopped chain's store.
func copyStore(t *testing.T, store string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(to, os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
	return to
}

// openStore serves a stopped chain's store in this process, which gives the test rights that nobody outside has.
func openStore(t *testing.T, store string) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{StoreDir: store, Durability: embedded.DurabilityInterval, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, server) })
	return server
}

// closeStore MAY be called again.
func closeStore(t *testing.T, server *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitLimit)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// ledger gives a connection with the ledger's own rights.
func ledger(t *testing.T, server *embedded.Server) jetstream.JetStream {
	t.Helper()
	nc, err := server.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// forgeValue writes another value over the newest one of a key, with the headers of the true one.
func forgeValue(t *testing.T, server *embedded.Server, key string) {
	t.Helper()
	ctx, js := t.Context(), ledger(t, server)
	stream, err := js.Stream(ctx, topology.BucketStream(topology.BucketAssignments))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, topology.BucketSubject(topology.BucketAssignments, key))
	if err != nil {
		t.Fatal(err)
	}
	forged := copied(m.Subject, m.Header)
	forged.Data = bytes.Replace(m.Data, []byte(`"version":"`), []byte(`"version":"6.66`), 1)
	if _, err := js.PublishMsg(ctx, forged); err != nil {
		t.Fatal(err)
	}
}

// forgeEvent makes the stream anew, event by event, with one of them changed: the server itself lets nobody change a stored
// message. It gives the changed event's sequence.
func forgeEvent(t *testing.T, server *embedded.Server, key string) (changed uint64) {
	t.Helper()
	ctx, js := t.Context(), ledger(t, server)
	stream, err := js.Stream(ctx, topology.EventStream)
	if err != nil {
		t.Fatal(err)
	}
	last := stream.CachedInfo().State.LastSeq
	messages, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	reading, err := messages.Messages(jetstream.PullMaxMessages(2000))
	if err != nil {
		t.Fatal(err)
	}
	var all []*nats.Msg
	for sequence := uint64(1); sequence <= last; sequence++ {
		m, err := reading.Next()
		if err != nil {
			t.Fatal(err)
		}
		event := copied(m.Subject(), m.Headers())
		event.Data = m.Data()
		if m.Subject() == "evt.assignment."+key && sequence > last/2 && changed == 0 {
			changed = sequence
			event.Data = slices.Clone(m.Data())
			event.Data[len(event.Data)-1] ^= 1 // the last letter of the reason
		}
		all = append(all, event)
	}
	reading.Stop()
	if err := js.DeleteStream(ctx, topology.EventStream); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, topology.Events(server.Options())); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := js.PublishMsgAsync(m); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(waitLimit):
		t.Fatal("the stream could not be made anew")
	}
	return changed
}

// copied gives a message with the subject and headers of another, without the server's own.
func copied(subject string, header nats.Header) *nats.Msg {
	m := nats.NewMsg(subject)
	for name, v := range header {
		if !strings.HasPrefix(name, "Nats-") {
			m.Header[name] = v
		}
	}
	return m
}
