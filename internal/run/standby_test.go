package run

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/commands"
	"catenary/embedded"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// takeoverLimit is when a takeover counts as failed. It takes a second, as docs/performance.md says; a machine that is busy with
// other things may need longer.
const takeoverLimit = 20 * time.Second

// oneOfMany is one of several writers' processes.
type oneOfMany struct {
	conn  *nats.Conn
	stop  context.CancelFunc
	ready chan struct{}
	said  *estest.Log
	ended chan error
}

// startOne starts a writer on a connection of its own.
func startOne(t *testing.T, nc *nats.Conn, c WriterConfig) *oneOfMany {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &oneOfMany{conn: nc, stop: cancel, ready: make(chan struct{}), said: &estest.Log{}, ended: make(chan error, 1)}
	c.Ready, c.Logger = func() { close(o.ready) }, slog.New(slog.NewTextHandler(o.said, nil))
	go func() {
		err := Writer(ctx, nc, c)
		c.Logger.Info("ended", "error", err)
		o.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			t.Logf("a writer said:\n%s", o.said)
		}
	})
	return o
}

// active waits until one of the writers takes commands, and gives it and the others.
func active(t *testing.T, writers []*oneOfMany) (*oneOfMany, []*oneOfMany) {
	t.Helper()
	deadline := time.After(waitLimit)
	for {
		for i, w := range writers {
			select {
			case <-w.ready:
				return w, append(append([]*oneOfMany{}, writers[:i]...), writers[i+1:]...)
			case err := <-w.ended:
				t.Fatalf("a writer ended: %v\n%s", err, w.said)
			case <-deadline:
				t.Fatal("no writer is ready")
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// tryLimit is how long one try may take: a request that was on its way to a process that is killed is lost with it.
const tryLimit = 250 * time.Millisecond

// registerUntilDone sends a command until it is done, and says how long that took. Only that nobody is there, or one who is
// stopping, is a reason to send it again.
func registerUntilDone(t *testing.T, nc *nats.Conn, node string) time.Duration {
	t.Helper()
	client, start, id := commands.NewClient(dispatch.NewClient(nc)), time.Now(), newID()
	for time.Since(start) < waitLimit {
		ctx, cancel := context.WithTimeout(t.Context(), tryLimit)
		a, err := client.Send(ctx, commands.RegisterNode{Node: node}, dispatch.Options{ID: id})
		cancel()
		switch {
		case errors.IsAny(err, dispatch.ErrNoWriter, dispatch.ErrTimeout), err == nil && (a.Status == es.StatusBusy || a.Status == es.StatusUnknown):
		case err != nil || a.Status != es.StatusAccepted:
			t.Fatalf("%s: %+v, %v", node, a, err)
		default:
			return time.Since(start)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatalf("%s was not done within %v", node, waitLimit)
	return 0
}

// awaitWord waits until a writer has said something.
func (o *oneOfMany) awaitWord(t *testing.T, word string) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for !strings.Contains(o.said.String(), word) {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("a writer has not said %q", word)
		}
	}
}

// services counts the instances that `nats micro ls` would show.
func services(t *testing.T, nc *nats.Conn) int {
	t.Helper()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe()
	if err := nc.PublishRequest("$SRV.PING."+topology.WriterService, inbox, nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		m, err := sub.NextMsg(200 * time.Millisecond)
		if errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		var ping micro.Ping
		if err := json.Unmarshal(m.Data, &ping); err != nil {
			t.Fatal(err)
		}
		n++
	}
}

// checkStream holds the chain against what was sent: every node was registered once.
func checkStream(t *testing.T, nc *nats.Conn, nodes map[string]bool) {
	t.Helper()
	store, err := natsstore.Open(t.Context(), nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var head es.Head
	stand := map[string]int{}
	for m, err := range es.VerifyChain(&head, store.Read(t.Context(), 0)) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := es.ReadEvent(m)
		if err != nil {
			t.Fatal(err)
		}
		if e.Ref.Aggregate == "node" {
			stand[string(e.Ref.Key)]++
		}
	}
	for node := range nodes {
		if stand[node] != 1 {
			t.Errorf("%s was registered %d times", node, stand[node])
		}
	}
	if len(stand) != len(nodes) {
		t.Errorf("%d nodes stand, %d were registered", len(stand), len(nodes))
	}
}

// Of three writers one works. When it stops the next takes over at once; when it is cut off, in less than two seconds.
func TestStandbyWriters(t *testing.T) {
	t.Parallel()
	options := topology.Options{EventStoreBytes: 100 << 20, BucketBytes: 10 << 20}
	for _, where := range []struct {
		name  string
		start func(t *testing.T) (connect func() *nats.Conn, options topology.Options)
	}{
		{"one node", func(t *testing.T) (func() *nats.Conn, topology.Options) {
			bus := estest.Server(t, false)
			return func() *nats.Conn { return bus.Connect(t) }, options
		}},
		{"three nodes", func(t *testing.T) (func() *nats.Conn, topology.Options) {
			c, err := embedded.StartCluster(t.Context(), embedded.ClusterConfig{
				StoreDir: filepath.Join(t.TempDir(), "cluster"), MaxStoreBytes: 4 << 30,
				EventStoreBytes: options.EventStoreBytes, BucketBytes: 20 << 20, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
				defer cancel()
				if err := c.Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
			return func() *nats.Conn {
				nc, err := c.Ledger()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(nc.Close)
				return nc
			}, c.Options()
		}},
	} {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			connect, options := where.start(t)
			nc := connect()
			var writers []*oneOfMany
			for range 3 {
				writers = append(writers, startOne(t, connect(), WriterConfig{Streams: options}))
			}
			nodes := map[string]bool{}
			register := func(node string) time.Duration { nodes[node] = true; return registerUntilDone(t, nc, node) }

			first, others := active(t, writers)
			for _, w := range others {
				w.awaitWord(t, "standing by")
			}
			register("n1")
			if n := services(t, nc); n != 1 {
				t.Errorf("%d writers take commands, want 1", n)
			}
			first.stop()
			if d := register("n2"); d > takeoverLimit/2 {
				t.Errorf("after a clean stop the next command was done after %v", d)
			} else {
				t.Logf("clean stop: %v", d)
			}
			if err := <-first.ended; err != nil {
				t.Errorf("told to stop: %v", err)
			}
			second, last := active(t, others)
			register("n3")
			second.conn.Close() // nothing is released: as if it was killed
			d := register("n4")
			t.Logf("cut off: %v", d)
			if d > takeoverLimit {
				t.Errorf("after the connection was cut the next command was done after %v, want less than %v", d, takeoverLimit)
			}
			if err := <-second.ended; !errors.Is(err, ErrConnectionClosed) {
				t.Errorf("without its connection: %v", err)
			}
			active(t, last)
			last[0].stop()
			if err := <-last[0].ended; err != nil {
				t.Errorf("told to stop: %v", err)
			}
			checkStream(t, nc, nodes)
		})
	}
}

// A writer whose turn was taken from it stands by again, and takes over when the other is gone.
func TestWriterStandsDown(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	options := topology.Options{EventStoreBytes: 100 << 20, BucketBytes: 10 << 20}
	nc := bus.Connect(t)
	first := startOne(t, bus.Connect(t), WriterConfig{Streams: options})
	active(t, []*oneOfMany{first})
	usurper := startOne(t, bus.Connect(t), WriterConfig{Streams: options, Alone: true})
	active(t, []*oneOfMany{usurper})
	deadline := time.Now().Add(waitLimit)
	for services(t, nc) != 1 {
		if time.Now().After(deadline) {
			t.Fatal("the first writer does not stand down")
		}
	}
	nodes := map[string]bool{"n1": true, "n2": true}
	registerUntilDone(t, nc, "n1")
	usurper.stop()
	if d := registerUntilDone(t, nc, "n2"); d > takeoverLimit/2 {
		t.Errorf("the next command was done after %v", d)
	}
	checkStream(t, nc, nodes)
	for _, w := range []*oneOfMany{first, usurper} {
		w.stop()
		if err := <-w.ended; err != nil {
			t.Errorf("told to stop: %v", err)
		}
	}
}

// With all writers at work by mistake nothing is lost or doubled.
func TestWritersThatContend(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	options := topology.Options{EventStoreBytes: 100 << 20, BucketBytes: 10 << 20}
	var writers []*oneOfMany
	for range 3 {
		writers = append(writers, startOne(t, bus.Connect(t), WriterConfig{Streams: options, Contend: true}))
	}
	for _, w := range writers {
		active(t, []*oneOfMany{w})
	}
	nc := bus.Connect(t)
	if n := services(t, nc); n != len(writers) {
		t.Fatalf("%d writers take commands, want %d", n, len(writers))
	}
	const senders, each = 6, 10
	nodes := map[string]bool{}
	var group sync.WaitGroup
	for s := range senders {
		for n := range each {
			nodes[fmt.Sprintf("n%d-%d", s, n)] = true
		}
		group.Go(func() {
			for n := range each {
				registerUntilDone(t, nc, fmt.Sprintf("n%d-%d", s, n))
			}
		})
	}
	group.Wait()
	checkStream(t, nc, nodes)
	for _, w := range writers {
		w.stop()
		if err := <-w.ended; err != nil {
			t.Errorf("told to stop: %v", err)
		}
	}
}
