package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"catenary/chain"
	"catenary/commands"
	"catenary/events"
)

// TestRolloutsByTheEngine has a chain of its own whose engine walks; the nodes report by hand.
func TestRolloutsByTheEngine(t *testing.T) {
	t.Parallel()
	u := started(t, "--store", t.TempDir(), "--durability", "interval", "--no-audit")
	c := caller{t: t, url: u.ready.NATS}
	c.fleet("walk", "wa", "wb")
	strategy := file(t, "walk.yaml", "tiers:\n  - name: first\n    selector: {nodes: [wa]}\n  - name: rest\n    timeout: 1s\n    failure-budget: 1\n")
	c.ok("strategy", "declare", "walk", strategy)
	c.ok("track", "declare", "walks", "--module", "walk", "--strategy", "walk", "--on", "manual")
	if found := c.must(exitOK, "track", "why", "walks"); !strings.Contains(found.out, events.HoldManual) {
		t.Errorf("the track says %s", found.out)
	}
	c.ok("rollout", "trigger", "walks", "--reason", "it is time")
	page := read[[]chain.Rollout](c, "rollout", "ls")
	if len(page) != 1 || page[0].Track != "walks" || page[0].Reason != "it is time" {
		t.Fatalf("there are %+v", page)
	}
	id := page[0].ID
	eventually(t, "wa is told", func() bool {
		return slices.ContainsFunc(read[[]standstill](c, "rollout", "why", id), func(w standstill) bool {
			return w.Node == "wa" && w.Reason == events.HoldPending && !w.Until.IsZero()
		})
	})
	if found := c.ok("rollout", "why", id); !strings.Contains(found.out, events.HoldTier) || found.err != "" {
		t.Errorf("why says %s\n%s", found.out, found.err)
	}
	if found := c.must(exitTimedOut, "rollout", "wait", id, "--timeout", "300ms"); !strings.Contains(found.err, "wa walk pending") {
		t.Errorf("wait says %s", found.err)
	}
	// What is under way holds the track.
	if found := c.must(exitRefused, "rollout", "trigger", "walks"); !strings.Contains(found.err, id) {
		t.Errorf("triggered again it says %s", found.err)
	}
	// Case E34: a node that never answers is unknown, and no success whatever the budget accepts.
	told := read[chain.Assignment](c, "get", "assignment", "wa", "walk")
	body, err := json.Marshal(commands.Observe{Seen: events.Seen{Node: "wa", Module: "walk", Reference: told.Reference, Rollout: id}, Outcome: commands.OutcomeApplied})
	if err != nil {
		t.Fatal(err)
	}
	c.ok("send", "assignment", "observe", "--data", string(body))
	if found := c.must(exitFailed, "rollout", "wait", id, "--timeout", "1m"); !strings.Contains(found.err, "finished, 1 done, 1 unknown") {
		t.Errorf("wait says %s", found.err)
	}
	if found := c.must(exitFailed, "rollout", "watch", id); !strings.Contains(found.out, "wb walk walk@1 → walk@3: unknown (deadline)") {
		t.Errorf("watch shows %s", found.out)
	}
	c.must(exitNotFound, "rollout", "wait", "no-such-rollout")
	c.must(exitNotFound, "rollout", "trigger", "no-such-track")
	if code := u.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d:\n%s", code, u.stderr.String())
	}
}

// TestWhyWithoutAnEngine shows what the record says, and says so. It has a chain of its own: freezes of other tests would hold what is planned.
func TestWhyWithoutAnEngine(t *testing.T) {
	t.Parallel()
	u := started(t, "--store", t.TempDir(), "--durability", "interval", "--no-audit", "--no-engine")
	c := caller{t: t, url: u.ready.NATS}
	c.fleet("nowalk", "nowalka")
	c.ok("rollout", "plan", "--set", "nowalk=nowalk@2", "--strategy", file(t, "all.yaml", "tiers:\n  - name: all\n"), "--as", "nowalk")
	c.ok("rollout", "start", "nowalk")
	found := c.ok("rollout", "why", "nowalk")
	if !strings.Contains(found.out, "nowalka") || !strings.Contains(found.err, "this is what the record says") {
		t.Errorf("why says %s\n%s", found.out, found.err)
	}
	if code := u.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d:\n%s", code, u.stderr.String())
	}
}
