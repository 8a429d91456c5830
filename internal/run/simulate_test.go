package run

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/internal/natsconn"
)

// jetStream gives access to the ledger's streams.
func (c *chainOn) jetStream(t *testing.T) jetstream.JetStream {
	t.Helper()
	nc, err := c.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// consumers counts those of all streams.
func consumers(t *testing.T, js jetstream.JetStream) int {
	t.Helper()
	n := 0
	list := js.ListStreams(t.Context())
	for info := range list.Info() {
		n += info.State.Consumers
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// A thousand agents over twenty restarts take some minutes.
var (
	manyAgents   = flag.Int("agents", 50, "how many agents TestAgentsNeedNoConsumers simulates")
	manyRestarts = flag.Int("restarts", 3, "how often it restarts the server under them")
)

// TestAgentsNeedNoConsumers restarts the server under many agents: all come back by themselves, and the consumers on the server
// do not grow with them.
func TestAgentsNeedNoConsumers(t *testing.T) {
	t.Parallel()
	count, restarts := *manyAgents, *manyRestarts
	store := t.TempDir()
	c := startOn(t, store, "127.0.0.1:0")
	conn, err := natsconn.Connect(t.Context(), natsconn.Config{Server: c.ClientURL(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	address := conn.ConnectedAddr()
	c.send(t, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "web"}})
	var register, assign []es.Payload
	for i := range count {
		node := fmt.Sprintf("n-%04d", i+1)
		register = append(register, commands.RegisterNode{Node: node})
		assign = append(assign, commands.Assign{Node: node, Module: "web", Reference: pkg("web", "1")})
	}
	c.send(t, register...)
	without := consumers(t, c.jetStream(t))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		defer conn.Close()
		ended <- Simulate(ctx, conn, SimulateConfig{Prefix: "n", Count: count, Every: time.Second, Logger: slog.New(slog.DiscardHandler)})
	}()
	c.send(t, assign...)
	for restart := range restarts + 1 {
		nodes, js := c.nodes(t), c.jetStream(t)
		eventually(t, "all have converged", func() bool {
			all, err := nodes.Nodes(t.Context())
			if err != nil {
				return false
			}
			converged := 0
			for _, n := range all {
				if n.Converged {
					converged++
				}
			}
			return converged == count
		})
		// The server keeps one or two of the chain that was stopped for up to half a minute.
		found := consumers(t, js)
		t.Logf("after %d restarts %d agents have converged, with %d consumers; there were %d without agents", restart, count, found, without)
		if found-without >= 5 {
			t.Errorf("%d consumers with %d agents, %d without", found, count, without)
		}
		if restart < restarts {
			c.stop()
			c = startOn(t, store, address)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the agents ended with %v", err)
	}
}
