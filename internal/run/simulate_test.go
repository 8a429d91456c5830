package run

import (
	"context"
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

// TestAgentsNeedNoConsumers restarts the server under many agents: all come back by themselves, and the consumers on the server
// do not grow with them.
func TestAgentsNeedNoConsumers(t *testing.T) {
	t.Parallel()
	const count = 50
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
	for restart := range 4 {
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
		if found := consumers(t, js); found-without >= count/10 {
			t.Errorf("%d consumers with %d agents, %d without", found, count, without)
		}
		if restart < 3 {
			c.stop()
			c = startOn(t, store, address)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the agents ended with %v", err)
	}
}
