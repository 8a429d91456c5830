package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/audit"
	"catenary/chain"
	"catenary/events"
)

// TestPublish stores a file and records it; again it changes nothing; and it is kept because a node is told to run it.
func TestPublish(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.module("published")
	c.node("published-node")
	file := filepath.Join(t.TempDir(), "app.tgz")
	content := bytes.Repeat([]byte("published "), 200_000)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := digestOf(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"publish", file, "--module", "published", "--commit", "abc", "--name", "published", "--version", "1.20"}
	c.ok(args...)
	if found := read[chain.Published](c, "get", "publication", digest); found.Module != "published" || found.Commit != "abc" {
		t.Errorf("the artifact's publication is %+v", found)
	}
	named := read[chain.Published](c, "get", "publication", "published@1.20")
	if len(named.Attestations) != 1 || named.Attestations[0] != (events.Attestation{Kind: chain.AttestedArtifact, Reference: digest}) {
		t.Errorf("the package's publication is %+v", named)
	}
	again := c.ok(args...)
	if strings.Count(again.out, `"status":"unchanged"`) != 3 {
		t.Errorf("published again it says %s", again.out)
	}
	if log := read[[]audit.Item](c, "log", "--aggregate", "publication", "--key", strings.ReplaceAll(digest, ":", "=3A")); len(log) != 1 {
		t.Errorf("published twice it has %d events", len(log))
	}
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := c.must(exitRefused, args...); !strings.Contains(found.err, "another version") {
		t.Errorf("the name given to another file, it says %s", found.err)
	}
	stored := read[[]depot.Stored](c, "artifacts", "ls")
	if !strings.Contains(c.ok("artifacts", "ls", "-o", "name").out, digest) || len(stored) == 0 {
		t.Errorf("stored is %+v", stored)
	}
	if v := read[depot.Verdict](c, "artifacts", "show", digest); !v.Keep || v.Why != "it was published" || v.Until.IsZero() || v.Bytes != int64(len(content)) {
		t.Errorf("the verdict is %+v", v)
	}
	if table := c.ok("artifacts", "prune", "--dry-run", "--window", "1ns").out; !strings.Contains(table, digest) {
		t.Errorf("with no window it is kept:\n%s", table)
	}
	c.ok("assign", "published-node", "published", "--package", "published@1.20")
	if v := read[depot.Verdict](c, "artifacts", "show", digest, "--window", "1ns"); !v.Keep || v.Why != "node published-node is told to run it as published" {
		t.Errorf("the verdict is %+v", v)
	}
	c.ok("artifacts", "prune", "--window", "1ns")
	if out := c.ok("artifacts", "ls", "-o", "name").out; !strings.Contains(out, digest) {
		t.Errorf("what stands is removed; left is %q", out)
	}
	c.ok("unassign", "published-node", "published")
	if out := c.ok("artifacts", "prune", "--window", "1ns", "-o", "name").out; !strings.Contains(out, digest) {
		t.Errorf("removed is %q, want %s in it", out, digest)
	}
	if found := c.must(exitNotFound, "artifacts", "show", digest); !strings.Contains(found.err, "was removed at") {
		t.Errorf("it says %s", found.err)
	}
}

func TestPublishSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := on(t)
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"publish":                                   "takes FILE",
		"publish " + empty:                          "--module is missing",
		"publish " + dir + "/none --module m":       "no such file",
		"publish " + dir + " --module m":            "pack a directory",
		"publish " + empty + " --module m":          "nothing to keep",
		"publish " + empty + " --module m --name n": "version",
		"artifacts show web@1.20":                   "64 hexadecimal digits",
		"artifacts prune --window 0s":               "above zero",
		"logs":                                      "arg",
		"logs n1 --step web":                        "ROLLOUT.TIER.NODE.MODULE",
		"logs n1 --step r.t.n2.web":                 "of node n2, and n1 is given",
	} {
		if found := c.must(exitUsage, strings.Fields(args)...); !strings.Contains(found.err, says) {
			t.Errorf("%s says %q, want a word on %q", args, found.err, says)
		}
	}
	// A file that can't be kept is refused before it is read, as nothing names its digest.
	large := filepath.Join(dir, "large")
	if err := errors.CombineErrors(os.WriteFile(large, nil, 0o600), os.Truncate(large, depot.MaxBytes+1)); err != nil {
		t.Fatal(err)
	}
	if found := c.call("publish", large, "--module", "m"); found.code == exitOK || !strings.Contains(found.err, large+" has 4294967297 bytes: the limit is 4294967296") {
		t.Errorf("it ends with %d: %s", found.code, found.err)
	}
	if found := c.must(exitNotFound, "artifacts", "show", artifacts.Algorithm+strings.Repeat("0", 64)); !strings.Contains(found.err, "not in the depot") {
		t.Errorf("it says %s", found.err)
	}
}
