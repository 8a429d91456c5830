package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"catenary/agent/desk"
	"catenary/chain"
	"catenary/embedded"
)

// TestNodes looks at the demo's fleet, whose agents are simulated, and at nodes without any.
func TestNodes(t *testing.T) {
	t.Parallel()
	u := started(t, "--store", t.TempDir(), "--durability", "interval", "--no-audit", "--demo")
	c := caller{t: t, url: u.ready.NATS}
	c.ok("node", "wait-converged", "--timeout", "60s")
	if listed := c.ok("node", "ls").out; !strings.Contains(listed, "store-1") || !strings.Contains(listed, "external") || !strings.Contains(listed, "yes") {
		t.Errorf("listed are:\n%s", listed)
	}
	c.ok("assign", "store-1", "web", "--package", "web@1.1")
	c.ok("node", "wait-converged", "store-1", "--timeout", "60s")
	if found := read[chain.Assignment](c, "get", "assignment", "store-1", "web"); found.Observed == nil || found.Observed.Package.Version != "1.1" {
		t.Errorf("it reports %+v", found.Observed)
	}
	if n := read[desk.Node](c, "node", "show", "store-1"); n.State != desk.On || !n.Converged || len(n.Status.Drivers) != 1 {
		t.Errorf("store-1 is %+v", n)
	}
	if shown := c.ok("node", "show", "store-1", "-o", "table").out; !strings.Contains(shown, "node store-1 is on") || !strings.Contains(shown, "converged: yes") {
		t.Errorf("shown is:\n%s", shown)
	}

	// Case E34: a node that is off is named, and the exit code says that not all is well.
	c.node("n5")
	c.ok("assign", "n5", "web", "--package", "web@1.1")
	late := c.call("node", "wait-converged", "--timeout", "1s")
	if late.code != exitTimedOut || !strings.Contains(late.err, "not converged after 1s: n5: ") || strings.Contains(late.err, "store-1") || strings.Contains(late.err, "deadline") {
		t.Errorf("with a node off it ends with %d:\n%s", late.code, late.err)
	}
	// Who plays a node without an agent says himself that it is there.
	c.ok("node", "check-in", "n5", "store-1", "--every", "5m")
	if n := read[desk.Node](c, "node", "show", "n5"); n.State != desk.On || n.Converged || n.Rivals {
		t.Errorf("checked in by hand, n5 is %+v", n)
	}
	for node, code := range map[string]int{"stroe-1": exitNotFound, "edge-1": exitRefused, "": exitUsage} {
		c.must(code, "node", "check-in", node)
	}
	c.must(exitUsage, "node", "check-in", "n5", "--every", "6m")
	if nowhere := c.call("node", "show", "stroe-1"); nowhere.code != exitNotFound || !strings.Contains(nowhere.err, "store-1") {
		t.Errorf("a node that is not there: %d\n%s", nowhere.code, nowhere.err)
	}
	if nowhere := c.call("node", "wait-converged", "stroe-1"); nowhere.code != exitNotFound {
		t.Errorf("waiting for a node that is not there: %d\n%s", nowhere.code, nowhere.err)
	}
	if others := c.call("node", "wait-converged", "edge-1"); others.code != exitRefused {
		t.Errorf("waiting for somebody else's node: %d\n%s", others.code, others.err)
	}
	if code := u.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d:\n%s", code, u.stderr.String())
	}
}

func TestAgentCredentials(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	c := caller{t: t}
	var made embedded.Credentials
	if err := json.Unmarshal([]byte(c.ok("agent", "credentials", "n 1", "--store", store).out), &made); err != nil || made.User != "agent.n=201" || made.Password == "" {
		t.Errorf("made are %+v, %v", made, err)
	}
	kept, err := os.ReadFile(filepath.Join(store, "agents.json"))
	if err != nil || strings.Contains(string(kept), made.Password) {
		t.Errorf("kept is %s, %v", kept, err)
	}
	if none := c.call("agent", "credentials", "", "--store", store); none.code != exitUsage {
		t.Errorf("without a name: %d\n%s", none.code, none.err)
	}
}
