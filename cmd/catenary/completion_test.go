package main

import (
	"strings"
	"testing"
	"time"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	c := on(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if found := c.ok("completion", shell); !strings.Contains(found.out, "catenary") {
			t.Errorf("completion for %s is %.100q", shell, found.out)
		}
	}
	c.node("complete-node")
	c.module("complete-module")
	c.ok("assign", "complete-node", "complete-module", "--package", "p@1", "--wait", "30s")
	for args, want := range map[string]string{
		"wat":                                "watch",
		"rollout plan --module ":             "complete-module",
		"track declare t --on ":              "publication",
		"ge":                                 "get",
		"get assignm":                        "assignments",
		"get node ":                          "complete-node",
		"get nodes complete-n":               "complete-node",
		"get assignments complete-n":         "complete-node.complete-module",
		"history assignment complete-node ":  "complete-module",
		"assign ":                            "complete-node",
		"assign complete-node ":              "complete-module",
		"send ":                              "assignment",
		"send node ":                         "relabel",
		"get nodes -o ":                      "yaml",
		"unassign complete-node complete-mo": "complete-module",
	} {
		c.offers(args, want)
	}
	// A bus that is away leaves a shell alone.
	c.url = "nats://127.0.0.1:1"
	if found := c.ok("__complete", "get", "node", ""); strings.Contains(found.out, "Error") {
		t.Errorf("without a bus it offers %q", found.out)
	}
}

// completeRollouts is tried on a chain without freezes: one of another test would leave nothing to be planned.
func completeRollouts(t *testing.T, c caller) {
	c.fleet("complete-step", "complete-place")
	strategy := file(t, "all.yaml", "tiers:\n  - name: all\n")
	c.ok("rollout", "plan", "--set", "complete-step=complete-step@2", "--strategy", strategy, "--as", "complete-rollout", "--wait", "30s")
	for args, want := range map[string]string{
		"rollout settle ":                                             "complete-rollout",
		"rollout settle complete-rollout ":                            "complete-place",
		"rollout retry-step complete-rollout complete-place ":         "complete-step",
		"rollout settle complete-rollout complete-place x --outcome ": "skipped",
	} {
		c.offers(args, want)
	}
}

// offers demands that a shell is offered something, as the first of a line, after what has been typed. A shell waits for a bus no longer
// than somebody who types does, so that on a busy machine it is offered nothing now and then.
func (c caller) offers(args, want string) {
	c.t.Helper()
	var found called
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); {
		found = c.ok(append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if strings.Contains("\n"+found.out, "\n"+want) {
			return
		}
	}
	c.t.Errorf("%q offers\n%swant %s among it", args, found.out, want)
}
