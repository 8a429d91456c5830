package cluster_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"catenary/embedded"
	"catenary/es/estest"
	"catenary/internal/cluster"
	"catenary/internal/health"
	"catenary/internal/topology"
)

// A node that was stopped leaves a goroutine of the server's own for half a minute, as embedded says.
func TestMain(m *testing.M) {
	const stream = "github.com/nats-io/nats-server/v2/server.(*stream)."
	estest.VerifyTestMain(m, goleak.IgnoreAnyFunction(stream+"setupMirrorConsumer.func3"), goleak.IgnoreAnyFunction(stream+"tryDeleteSourcingConsumer.func1"))
}

const patience = 30 * time.Second

// TestAsk asks three servers as a person does, while one of them is stopped, and when it is back.
func TestAsk(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	c, err := embedded.StartCluster(ctx, embedded.ClusterConfig{StoreDir: t.TempDir(), Durability: embedded.DurabilityInterval, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	ledger, err := c.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, topology.Events(c.Options())); err != nil {
		t.Fatal(err)
	}
	person, err := nats.Connect(c.ClientURL(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	// until asks until what is said is so: leaders change, and servers hear of one another, when they do.
	until := func(what string, so func(cluster.View) bool) {
		t.Helper()
		for {
			v, err := cluster.Ask(ctx, person)
			if err != nil && ctx.Err() == nil && !errors.Is(err, cluster.ErrSilent) {
				t.Fatal(err)
			}
			if err == nil && so(v) {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %+v, %v", what, v, err)
			}
		}
	}
	well := func(v cluster.View) bool {
		state := health.OK
		for _, f := range cluster.Judge(v) {
			state = state.Worse(f.State)
		}
		return state == health.OK && v.Size == 3 && len(v.Servers) == 3 && v.Lacking() == "" && len(v.Streams) == 1 && v.Streams[0].There == 3
	}
	until("all is well", well)
	leader, _ := c.Leader(topology.EventStream)
	if err := c.StopNode(leader); err != nil {
		t.Fatal(err)
	}
	until("one is off", func(v cluster.View) bool {
		return len(v.Servers) == 3 && v.Servers[leader].Off && v.Lacking() != "" && v.Leader != "" && len(v.Streams) == 1 && v.Streams[0].Leader != "" && v.Streams[0].There == 2
	})
	if err := c.StartNode(ctx, leader); err != nil {
		t.Fatal(err)
	}
	until("all is well again", well)
}

// TestAskOne: a server that stands alone says so, and one that does not let people ask is silent.
func TestAskOne(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	v, err := cluster.Ask(t.Context(), nc)
	if err != nil || v.Clustered || v.Size != 1 || len(v.Servers) != 1 || !v.Servers[0].SyncAlways || v.Servers[0].MaxStore == 0 {
		t.Errorf("it says %+v, %v", v, err)
	}
	if _, err := cluster.Ask(t.Context(), estest.Server(t, false).Connect(t)); !errors.Is(err, cluster.ErrSilent) {
		t.Errorf("a server without our accounts gives %v", err)
	}
}
