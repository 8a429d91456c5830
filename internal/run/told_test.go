package run

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/commands"
	"catenary/embedded"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/topology"
)

// chainOn is a whole chain over one embedded server.
type chainOn struct {
	*embedded.Server
	commands *commands.Client
	queries  *audit.Client
	stop     func()
}

// startOn starts a chain over a store, with agents' users for nodes.
func startOn(t *testing.T, dir, listen string, nodes ...string) *chainOn {
	t.Helper()
	var users []topology.User
	for _, node := range nodes {
		users = append(users, topology.User{Name: topology.AgentUser(es.Key(node)), Password: "secret", Node: es.Key(node)})
	}
	log := slog.New(slog.DiscardHandler)
	s, err := embedded.Start(t.Context(), embedded.Config{
		StoreDir: dir, Listen: listen, Durability: embedded.DurabilityInterval, MaxStoreBytes: 4 << 30, Users: users, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := s.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), ledger, s.Options()); err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureMirrors(t.Context()); err != nil {
		t.Fatal(err)
	}
	copies, err := s.OpenMirrors()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan struct{}, 2), make(chan error, 1)
	isReady := func() { ready <- struct{}{} }
	go func() {
		ended <- Together(ctx, map[string]func(context.Context) error{
			"writer": func(ctx context.Context) error {
				return Writer(ctx, ledger, WriterConfig{Streams: s.Options(), Logger: log, Alone: true, Ready: isReady})
			},
			"projector": func(ctx context.Context) error {
				return Projector(ctx, ledger, ProjectorConfig{Streams: s.Options(), Copies: copies, Logger: log, Ready: isReady})
			},
		})
	}()
	c := &chainOn{Server: s, commands: commands.NewClient(dispatch.NewClient(ledger)), queries: audit.NewClient(ledger, nil)}
	stopped := false
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		stopping, done := context.WithTimeout(context.Background(), waitLimit)
		defer done()
		if err := errors.CombineErrors(<-ended, s.Shutdown(stopping)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(c.stop)
	for range 2 {
		select {
		case <-ready:
		case err := <-ended:
			ended <- err
			t.Fatalf("the chain ended at its start: %v", err)
		case <-time.After(waitLimit):
			t.Fatal("the chain is not ready")
		}
	}
	return c
}

// send sends commands, all of which must be accepted, and gives the last event.
func (c *chainOn) send(t *testing.T, sent ...es.Payload) (last uint64) {
	t.Helper()
	for _, p := range sent {
		answer, err := c.commands.Send(t.Context(), p, dispatch.Options{})
		if err != nil || answer.Status != es.StatusAccepted {
			t.Fatalf("answer %+v, error %v", answer, err)
		}
		last = answer.Sequence
	}
	return last
}

// hearing is an agent that only listens.
type hearing struct {
	conn     *nats.Conn
	messages chan *nats.Msg
	refusals chan error
	sources  map[string]uint64 // by key, of the last value heard
	buckets  map[string]int
}

func hear(t *testing.T, c *chainOn, node string, subject string) *hearing {
	t.Helper()
	h := &hearing{messages: make(chan *nats.Msg, 1<<16), refusals: make(chan error, 10), sources: map[string]uint64{}, buckets: map[string]int{}}
	var err error
	h.conn, err = nats.Connect(c.ClientURL(), nats.UserInfo(topology.AgentUser(es.Key(node)), "secret"), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { h.refusals <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.conn.Close)
	if _, err := h.conn.ChanSubscribe(subject, h.messages); err != nil {
		t.Fatal(err)
	}
	if err := h.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return h
}

// until hears values until one comes from an event. No value of a key may be of an event before that of the one heard before.
func (h *hearing) until(t *testing.T, event uint64) {
	t.Helper()
	late := time.After(waitLimit)
	for {
		select {
		case m := <-h.messages:
			bucket, e, err := natskv.ReadRepublished(m)
			if err != nil || !strings.HasPrefix(m.Subject, "told.n=201.") || m.Subject != "told."+e.Key {
				t.Fatalf("on %s it tells %+v, %v", m.Subject, e, err)
			}
			from := e.Meta.Source.Sequence
			if from <= h.sources[e.Key] {
				t.Errorf("key %s: event %d is told after event %d, from bucket %s", e.Key, from, h.sources[e.Key], bucket)
			}
			h.sources[e.Key], h.buckets[bucket] = from, h.buckets[bucket]+1
			if from == event {
				return
			}
		case <-late:
			t.Fatalf("event %d is not told; heard of %v", event, h.sources)
		}
	}
}

// TestAgentsAreTold: an agent hears every value of its own node's assignments and of no other's, in order, while a new generation of the
// bucket takes the place of the old one, and after the server was away.
func TestAgentsAreTold(t *testing.T) {
	t.Parallel()
	const modules = 70
	dir := filepath.Join(t.TempDir(), "store")
	c := startOn(t, dir, "127.0.0.1:0", "n 1", "n2")
	assign := func(node string, i, version int) es.Payload {
		return commands.Assign{Node: node, Module: fmt.Sprintf("m%d", i), Reference: events.Reference{Artifact: fmt.Sprintf("sha256:%02x", version)}}
	}
	setUp := []es.Payload{commands.RegisterNode{Node: "n 1"}, commands.RegisterNode{Node: "n2"}}
	for i := range modules {
		setUp = append(setUp, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: fmt.Sprintf("m%d", i)}})
	}
	c.send(t, setUp...)

	one := hear(t, c, "n 1", topology.ToldSubject(es.Key("n 1"), "*"))
	for _, foreign := range []string{topology.ToldSubject(es.Key("n 1"), "*"), topology.ToldPrefix + ".>", ">"} {
		other := hear(t, c, "n2", foreign)
		select {
		case err := <-other.refusals:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("another node's agent is refused %s with %v", foreign, err)
			}
		case <-time.After(waitLimit):
			t.Errorf("another node's agent may listen on %s", foreign)
		}
	}

	var last uint64
	for i := range modules {
		last = c.send(t, assign("n 1", i, 1))
	}
	c.send(t, assign("n2", 0, 1))
	one.until(t, last)
	if len(one.sources) != modules {
		t.Errorf("%d modules were told, want %d", len(one.sources), modules)
	}

	// The switch, while assignments go on.
	built := make(chan error, 1)
	go func() {
		_, err := c.queries.Rebuild(t.Context(), audit.RebuildQuestion{View: topology.BucketAssignments, RebuildOptions: project.RebuildOptions{Anew: true}}, nil)
		built <- err
	}()
	version := 2
	for done := false; !done; version++ {
		select {
		case err := <-built:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
		last = c.send(t, assign("n 1", version%modules, version))
	}
	one.until(t, last)
	if first, second := one.buckets["chain-assignments"], one.buckets["chain-assignments-g2"]; first < modules || second == 0 || first+second != modules+version-2 {
		t.Errorf("told from %v, want each of %d values once and some of either generation", one.buckets, modules+version-2)
	}

	c.stop()
	back := one.conn.StatusChanged(nats.CONNECTED)
	c = startOn(t, dir, strings.TrimPrefix(c.ClientURL(), "nats://"), "n 1", "n2")
	select {
	case <-back:
	case <-time.After(waitLimit):
		t.Fatal("the agent is not connected again")
	}
	if err := one.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	one.until(t, c.send(t, assign("n 1", 3, version)))
}
