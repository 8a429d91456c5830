package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/topology"
)

// TestDurable sends through the inbox, as a person of the ops account does, and asks what became of it.
func TestDurable(t *testing.T) {
	t.Parallel()
	c := on(t)
	stored := read[es.Answer](c, "send", "node", "register", "--data", `{"node":"durable-1"}`, "--durable", "--on-behalf-of", "ann")
	if stored.Status != es.StatusStored || stored.Sequence == 0 || stored.Key != "durable-1" {
		t.Fatalf("%+v", stored)
	}
	r := read[dispatch.Receipt](c, "receipt", stored.Command, "--wait")
	if r.Status != es.StatusAccepted || r.Inbox != stored.Sequence || r.Actor != "operator" || len(r.Events) != 1 {
		t.Errorf("%+v", r)
	}
	if found := c.ok("receipt", stored.Command, "-o", "table"); !strings.Contains(found.out, "accepted") || !strings.Contains(found.out, "node durable-1") {
		t.Errorf("the table is %s", found.out)
	}
	eventually(t, "the node can be read", func() bool { return c.call("get", "node", "durable-1").code == exitOK })

	// Who sends is told by the connection, whatever the message says.
	nc, err := nats.Connect(c.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	forged := nats.NewMsg(topology.InboxPrefix + ".node.register")
	forged.Data = []byte(`{"node":"durable-2"}`)
	for _, name := range []string{"Cat-Actor", "cat-actor", "CAT-ACTOR", "Nats-Request-Info", "nats-request-info"} {
		forged.Header[name] = []string{`{"acc":"LEDGER","kind":"Client","user":"root"}`}
	}
	reply, err := nc.RequestMsg(forged, waitLimit)
	if err != nil {
		t.Fatal(err)
	}
	var kept es.Answer
	if err := json.Unmarshal(reply.Data, &kept); err != nil {
		t.Fatal(err)
	}
	if r := read[dispatch.Receipt](c, "receipt", kept.Command, "--wait"); r.Status != es.StatusAccepted || r.Actor != "operator" {
		t.Errorf("forged: %+v", r)
	}

	// A repeat is done once; a command that a rule refuses has that as its outcome.
	again := read[es.Answer](c, "send", "node", "register", "--data", `{"node":"durable-1"}`, "--durable", "--on-behalf-of", "ann", "--id", stored.Command)
	if again.Status != es.StatusStored {
		t.Errorf("%+v", again)
	}
	refused := read[es.Answer](c, "send", "assignment", "unassign", "--data", `{"node":"durable-1","module":"no-such"}`, "--durable", "--expect-version", "7")
	found := c.must(exitConflict, "receipt", refused.Command, "--wait")
	if !strings.Contains(found.err, "conflict (version)") {
		t.Errorf("%s", found.err)
	}
	c.must(exitUsage, "send", "node", "register", "--data", `{"nod":"x"}`, "--durable")
	c.must(exitUsage, "send", "node", "register", "--data", `{"node":"x"}`, "--durable", "--wait=false")
	c.must(exitUsage, "receipt", "x")
	c.must(exitNotFound, "receipt", uuid.Must(uuid.NewV7()).String())
	c.must(exitTimedOut, "receipt", uuid.Must(uuid.NewV7()).String(), "--wait", "--timeout", "50ms")
}

// TestParked: what is sent over the border and waits for no answer is in nobody's name: it is parked, and done in the name of
// who retries it.
func TestParked(t *testing.T) {
	t.Parallel()
	u, err := startUp("--store", t.TempDir(), "--durability", "interval")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.stop() })
	c := caller{t: t, url: u.ready.NATS}
	if found := c.ok("parked", "ls"); found.out != "" || !strings.Contains(found.err, "no commands are parked") {
		t.Errorf("%+v", found)
	}
	nc, err := nats.Connect(u.ready.NATS, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for _, subject := range []string{topology.OutcomePrefix + ".x", topology.InboxStoredPrefix + ".node.forged", topology.ParkedStoredPrefix + ".forged"} {
		if err := nc.Publish(subject, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range []string{`{"node":"quiet"}`, `{"node":`} {
		if err := nc.Publish(topology.InboxPrefix+".node.register", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	var list []dispatch.Parked
	eventually(t, "two commands are parked", func() bool {
		list = read[[]dispatch.Parked](c, "parked", "ls")
		return len(list) == 2
	})
	for _, p := range list {
		if p.Error.Code != dispatch.CodeUnproven || p.Aggregate != "node" || p.Verb != "register" || p.Actor != "" {
			t.Errorf("%+v", p)
		}
	}
	if page := c.ok("parked", "ls", "--limit", "1", "-o", "name"); page.out != list[0].ID+"\n" || !strings.Contains(page.err, "--cursor") {
		t.Errorf("%+v", page)
	}
	if shown := c.ok("parked", "show", list[0].ID).out; !strings.Contains(shown, "node: quiet") {
		t.Errorf("shown as %s", shown)
	}
	again := read[es.Answer](c, "parked", "retry", list[0].ID)
	if r := read[dispatch.Receipt](c, "receipt", again.Command, "--wait"); r.Status != es.StatusAccepted || r.Actor != "operator" {
		t.Errorf("%+v", r)
	}
	c.must(exitUsage, "parked", "retry", list[1].ID)
	c.must(exitUsage, "parked", "discard", list[1].ID)
	c.ok("parked", "discard", list[1].ID, "--reason", "noise")
	if gone := c.must(exitNotFound, "parked", "show", list[1].ID); !strings.Contains(gone.err, "retried or discarded") || strings.Contains(gone.err, "nats:") {
		t.Errorf("%s", gone.err)
	}
	c.must(exitUsage, "parked", "show", "*")
	c.must(exitUsage, "parked")
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never came: %s", what)
		}
	}
}
