package dispatch_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// cutter is a proxy before a server that can cut a connection between a message and its answer: the message has arrived, and
// the answer never does.
type cutter struct {
	t        *testing.T
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu   sync.Mutex
	mark []byte // what to cut at; nil: nothing
	cuts int
	open map[net.Conn]struct{}
}

func newCutter(t *testing.T, bus *estest.Bus) *cutter {
	t.Helper()
	target, err := url.Parse(bus.URL())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{t: t, listener: l, target: target.Host, open: map[net.Conn]struct{}{}}
	c.running.Go(c.accept)
	t.Cleanup(func() {
		_ = l.Close()
		c.mu.Lock()
		for conn := range c.open {
			_ = conn.Close()
		}
		c.mu.Unlock()
		c.running.Wait()
	})
	return c
}

func (c *cutter) connect() *nats.Conn {
	c.t.Helper()
	nc, err := nats.Connect("nats://"+c.listener.Addr().String(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.DontRandomize(), nats.IgnoreDiscoveredServers(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	return nc
}

// cutAt cuts the next connection on which the server answers with the text: the answer is lost with it.
func (c *cutter) cutAt(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark = []byte(text)
}

func (c *cutter) cut() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

func (c *cutter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", c.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		c.mu.Lock()
		c.open[client], c.open[server] = struct{}{}, struct{}{}
		c.mu.Unlock()
		c.running.Go(func() { c.pass(client, server, func([]byte) bool { return true }) })
		c.running.Go(func() { c.pass(server, client, c.lets) })
	}
}

// lets says whether what the server sent may pass.
func (c *cutter) lets(data []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mark == nil || !bytes.Contains(data, c.mark) {
		return true
	}
	c.mark = nil
	c.cuts++
	return false
}

func (c *cutter) pass(from, to net.Conn, lets func([]byte) bool) {
	defer c.close(from, to)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !lets(buffer[:n]) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *cutter) close(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(c.open, conn)
	}
}

// insist sends a command again until it is answered, as a caller does whose connection was lost.
func insist(t *testing.T, bus dispatch.Bus, r dispatch.Request) es.Answer {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		a, err := bus.Send(ctx, r)
		cancel()
		if err == nil && a.Status != es.StatusUnknown && a.Status != es.StatusBusy {
			return a
		}
	}
	t.Fatalf("no answer to %s", r.ID)
	return es.Answer{}
}

// Case B03, on the caller's side: the connection is cut between the append and the answer. The repeat gets the first answer,
// and there is one event.
func TestCallerIsCutOff(t *testing.T) {
	c := serve(t)
	proxy := newCutter(t, c.bus)
	client := dispatch.NewClient(proxy.connect())
	for i := range 5 {
		r := payment(name(i), 1)
		proxy.cutAt(`"command":"` + r.ID)
		first := insist(t, client, r)
		if proxy.cut() != i+1 {
			t.Fatalf("%d cuts, want %d", proxy.cut(), i+1)
		}
		if first.Status != es.StatusAccepted || !first.Repeated || first.Version != 1 {
			t.Errorf("the repeat got %+v", first)
		}
	}
	if events := history(t, c.bench.store); len(events) != 1+5 {
		t.Errorf("%d events, want the writer's start and 5", len(events))
	}
}

// Case B03, on the writer's side: its connection to the store is cut between the append and the acknowledgement. Whatever the
// caller is told meanwhile, the repeat gets the first answer, and there is one event.
func TestWriterIsCutOff(t *testing.T) {
	bus := estest.Server(t, false)
	if err := natsstore.Ensure(t.Context(), bus.Connect(t), topology.Options{EventStoreBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	proxy := newCutter(t, bus)
	store, err := natsstore.Open(t.Context(), proxy.connect(), natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	b := start(t, store, func(c *dispatch.Config) { c.Patience = 400 * time.Millisecond })
	for i := range 5 {
		cmd := command(pay{Account: name(i), Amount: 1})
		proxy.cutAt(`"stream":"` + topology.EventStream)
		first := b.send(cmd)
		for tries := 0; first.Status == es.StatusUnknown || first.Status == es.StatusBusy; tries++ {
			if tries > 50 {
				t.Fatalf("never settled: %+v", first)
			}
			first = b.send(cmd)
		}
		if proxy.cut() != i+1 {
			t.Fatalf("%d cuts, want %d", proxy.cut(), i+1)
		}
		again := b.send(cmd)
		if !again.Repeated {
			t.Errorf("the repeat is not marked")
		}
		again.Repeated, first.Repeated = false, false
		if diff := cmp.Diff(first, again); diff != "" || first.Status != es.StatusAccepted {
			t.Errorf("%+v, and the repeat (-first +repeat):\n%s", first, diff)
		}
	}
	if events := history(t, store); len(events) != 1+5 {
		t.Errorf("%d events, want the writer's start and 5", len(events))
	}
}

// An outbox whose connection is cut again and again, and whose server is restarted in the middle, sends everything through
// the inbox, in order and once.
func TestOutboxOverABadConnection(t *testing.T) {
	const count = 30
	o := openOffice(t)
	proxy := newCutter(t, o.bus)
	box := outbox(t, t.TempDir(), dispatch.NewInboxClient(proxy.connect(), nil), func(c *dispatch.OutboxConfig) {
		c.Timeout, c.Logger = 300*time.Millisecond, slog.New(slog.DiscardHandler)
	})
	var sent []dispatch.Request
	for i := range count {
		r := payment("shop", i+1)
		sent = append(sent, r)
		keepIn(t, box, r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	proxy.cutAt(sent[count/2].ID)
	go func() { done <- box.Run(ctx) }()
	for i := range 3 {
		if i > 0 {
			proxy.cutAt(`"stored"`) // whichever comes next
		}
		eventually(t, "the connection is cut", func() bool { return proxy.cut() > i })
	}
	o.bus.Stop()
	o.bus.Start(t)
	flushing, over := context.WithTimeout(t.Context(), 30*time.Second)
	defer over()
	if err := box.Flush(flushing); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b := start(t, o.ledger)
	o.work(o.store, b.writer.Submit)
	for _, r := range sent {
		if got := o.outcome(r.ID); got.Status != es.StatusAccepted {
			t.Fatalf("%+v", got)
		}
	}
	inOrder(t, history(t, o.ledger), 1, count)
}
