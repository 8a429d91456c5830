package main

import (
	"strings"
	"testing"
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
	c.fleet("complete-step", "complete-place")
	c.ok("rollout", "plan", "--set", "complete-step=complete-step@2", "--strategy", file(t, "all.yaml", "tiers:\n  - name: all\n"), "--as", "complete-rollout", "--wait", "30s")
	for args, want := range map[string]string{
		"wat": "watch",
		"rollout settle complete-rollout complete-place x --outcome ": "skipped",
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
		// What can't be read in time is not offered, and a machine that runs all tests at once may be late.
		eventually(t, args+" to offer "+want, func() bool {
			found := c.ok(append([]string{"__complete"}, strings.Split(args, " ")...)...)
			return strings.Contains("\n"+found.out, "\n"+want)
		})
	}
	// A bus that is away leaves a shell alone.
	c.url = "nats://127.0.0.1:1"
	if found := c.ok("__complete", "get", "node", ""); strings.Contains(found.out, "Error") {
		t.Errorf("without a bus it offers %q", found.out)
	}
}
