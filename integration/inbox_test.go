package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
)

// TestInboxSurvivesKills kills the chain again and again while an outbox sends through the inbox and the inbox is worked off.
// At the end every command is done, once, and those of each node in order.
func TestInboxSurvivesKills(t *testing.T) {
	t.Parallel()
	const nodes, each, kills = 5, 60, 3
	address, store := freeAddress(t), filepath.Join(t.TempDir(), "store")
	process := up(t, store, address, "interval")
	nc, err := nats.Connect(process.url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	inbox := dispatch.NewInboxClient(nc, nil)
	box, err := dispatch.OpenOutbox(dispatch.OutboxConfig{Dir: t.TempDir(), Bus: inbox, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	client := commands.NewClient(box)
	ids := map[string]bool{}
	send := func(p es.Payload) {
		t.Helper()
		a, err := client.Send(t.Context(), p, dispatch.Options{})
		if err != nil || a.Status != es.StatusStored {
			t.Fatalf("%+v, %v", a, err)
		}
		ids[a.Command] = true
	}
	for i := range each {
		for n := range nodes {
			node := fmt.Sprint("inbox-", n)
			if i == 0 {
				send(commands.RegisterNode{Node: node})
				continue
			}
			send(commands.RelabelNode{Node: node, Labels: map[string]string{"i": fmt.Sprint(i)}})
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() { sent <- box.Run(ctx) }()
	for kill := range kills {
		left := nodes * each * (kills - kill) / (kills + 1)
		await(t, "the outbox has sent some more", func() bool { return box.Pending() <= left })
		process.kill()
		process = up(t, store, address, "interval")
	}
	flushing, over := context.WithTimeout(t.Context(), waitLimit)
	defer over()
	if err := box.Flush(flushing); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	for id := range ids {
		r, err := inbox.Await(flushing, dispatch.ReceiptQuestion{ID: id})
		if err != nil || r.Status != es.StatusAccepted {
			t.Fatalf("%+v (%+v), %v", r, r.Error, err)
		}
	}
	c := on(t, process)
	for n := range nodes {
		var labels []string
		for _, v := range read[[]struct {
			Value struct {
				Labels map[string]string `json:"labels"`
			} `json:"value"`
		}](c, "history", "node", fmt.Sprint("inbox-", n)) {
			labels = append(labels, v.Value.Labels["i"])
		}
		if len(labels) != each {
			t.Errorf("node %d has %d values, want %d", n, len(labels), each)
			continue
		}
		for i, found := range labels[1:] {
			if want := fmt.Sprint(i + 1); found != want {
				t.Errorf("node %d: value %d is %s, want %s", n, i+1, found, want)
			}
		}
	}
	c.must(0, "verify")
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never came: %s", what)
		}
	}
}
