package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/internal/topology"
)

// streamPath is where a store keeps the event stream.
func streamPath(store string) string {
	return filepath.Join(store, "jetstream", topology.AccountLedger, "streams", topology.EventStream)
}

// TestUpOverALostStream: a start over a stream that was damaged, cut short, deleted, forked or brought back from yesterday refuses before
// it records anything, and names what it expected and what it found.
func TestUpOverALostStream(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	run := func(store string, work func(c caller)) {
		t.Helper()
		u := started(t, "--store", store, "--durability", "interval")
		work(caller{t: t, url: u.ready.NATS})
		if code := u.stop(); code != exitOK {
			t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
		}
	}
	then := filepath.Join(t.TempDir(), "then.txt")
	run(store, func(c caller) {
		for n := range 20 {
			c.node(fmt.Sprintf("n%02d", n))
		}
	})
	yesterday := filepath.Join(t.TempDir(), "yesterday")
	if err := os.CopyFS(yesterday, os.DirFS(streamPath(store))); err != nil {
		t.Fatal(err)
	}
	everything := filepath.Join(t.TempDir(), "everything")
	if err := os.CopyFS(everything, os.DirFS(filepath.Join(store, "jetstream"))); err != nil {
		t.Fatal(err)
	}
	var last uint64
	run(store, func(c caller) {
		for n := range 10 {
			c.node(fmt.Sprintf("m%02d", n))
		}
		c.ok("audit", "checkpoint", "-o", then)
		last = read[struct {
			Events uint64 `json:"events"`
		}](c, "audit", "verify").Events
	})

	copied := func() string {
		to := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(to, os.DirFS(store)); err != nil {
			t.Fatal(err)
		}
		return to
	}
	replaced := func(with string) string {
		to := copied()
		if err := os.RemoveAll(streamPath(to)); err != nil {
			t.Fatal(err)
		}
		if with != "" {
			if err := os.CopyFS(streamPath(to), os.DirFS(with)); err != nil {
				t.Fatal(err)
			}
		}
		return to
	}
	forked := func() string {
		to := t.TempDir()
		run(to, func(c caller) {
			for n := range int(last) {
				c.node(fmt.Sprintf("x%02d", n))
			}
		})
		return replaced(streamPath(to))
	}
	refused := func(store string, says ...string) called {
		t.Helper()
		found := on(t).must(exitFailed, "up", "--store", store, "--listen", "127.0.0.1:0", "--durability", "interval")
		for _, s := range says {
			if !strings.Contains(found.err, s) {
				t.Errorf("it says\n%swant %q in it", found.err, s)
			}
		}
		if strings.Contains(found.err, `\n`) {
			t.Errorf("it says\n%swith a line break that a terminal is not given", found.err)
		}
		if tail := tailOf(t, store); tail > last+2 {
			t.Errorf("something was recorded: the stream ends at %d", tail)
		}
		return found
	}
	seen := fmt.Sprintf("has seen event %d", last)
	t.Run("case A03: one bit in the middle of the data file", func(t *testing.T) {
		to := copied()
		flip(t, streamPath(to), "evt.node.n07")
		refused(to, "is missing: event", "catenary verify --store")
	})
	t.Run("case A11: yesterday's copy", func(t *testing.T) {
		refused(replaced(yesterday), seen, "the stream ends at event 2", "bucket chain-nodes", "checkpoint of catenary-", "--accept-truncated-at 2")
	})
	t.Run("yesterday's copy of all that the server keeps", func(t *testing.T) {
		to := copied()
		if err := os.RemoveAll(filepath.Join(to, "jetstream")); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(to, "jetstream"), os.DirFS(everything)); err != nil {
			t.Fatal(err)
		}
		refused(to, "audit store "+seen, "the stream ends at event 2", "--accept-truncated-at 2")
		tail := tailOf(t, to)
		u := started(t, "--store", to, "--durability", "interval", "--accept-truncated-at", fmt.Sprint(tail), "--accept-reason", "the disk is gone")
		c := caller{t: t, url: u.ready.NATS}
		c.node("after")
		eventually(t, "an audit store of what is left", func() bool { return c.call("log").code == exitOK })
		if code := u.stop(); code != exitOK {
			t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
		}
		run(to, func(c caller) { c.node("again") }) // without a further word
	})
	t.Run("deleted", func(t *testing.T) {
		refused(replaced(""), seen, "the stream ends at event 0", "--accept-truncated-at 0")
	})
	t.Run("forked", func(t *testing.T) {
		refused(forked(), seen, fmt.Sprintf("but the stream's event %d has the hash", last))
	})
	t.Run("accepted", func(t *testing.T) {
		to := replaced(yesterday)
		tail := tailOf(t, to)
		args := []string{"up", "--store", to, "--listen", "127.0.0.1:0", "--durability", "interval", "--accept-reason", "the disk is gone"}
		if found := on(t).must(exitFailed, append(args, "--accept-truncated-at", fmt.Sprint(tail+1))...); !strings.Contains(found.err, fmt.Sprintf("accepted at event %d", tail+1)) {
			t.Errorf("with another number it says %q", found.err)
		}
		u := started(t, "--store", to, "--durability", "interval", "--accept-truncated-at", fmt.Sprint(tail), "--accept-reason", "the disk is gone")
		c := caller{t: t, url: u.ready.NATS}
		// The views that have seen what is lost are built anew by themselves, and the others go on.
		c.ok("send", "node", "register", "--data", `{"node":"after"}`, "--wait", "30s")
		eventually(t, "the view that is built anew", func() bool { return c.call("get", "node", "after").code == exitOK })
		c.must(exitNotFound, "get", "node", "m09")
		if v := c.ok("verify"); !strings.Contains(v.out, "chain-nodes-g2") {
			t.Errorf("verify shows\n%swant a new generation of the nodes' bucket", v.out)
		}
		eventually(t, "an audit store of what is left", func() bool { return c.call("log").code == exitOK })
		if found := c.ok("log", "--aggregate", "writer", "--limit", "1", "-o", "json"); !strings.Contains(found.out, "writer.loss-accepted.v1") || !strings.Contains(found.out, "the disk is gone") {
			t.Errorf("the log shows %s", found.out)
		}
		at := filepath.Join(t.TempDir(), "proof.json")
		eventually(t, "proofs again", func() bool { return c.call("audit", "prove", fmt.Sprint(tail+1), "-o", at).code == exitOK })
		c.ok("audit", "verify-proof", at)
		if found := c.ok("audit", "verify"); !strings.Contains(found.err, "whose loss was accepted") {
			t.Errorf("of a record with a loss it says %q", found.err)
		}
		// What was lost is not hidden from who has kept a checkpoint.
		if found := c.must(exitFailed, "audit", "verify", "--checkpoint", then); !strings.Contains(found.err, "does not hold") {
			t.Errorf("the earlier checkpoint gives %q", found.err)
		}
		if code := u.stop(); code != exitOK {
			t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
		}
		// The next start needs no further word.
		run(to, func(c caller) { c.ok("send", "node", "register", "--data", `{"node":"again"}`) })
	})
}

// tailOf gives the last event of a stopped chain's stream.
func tailOf(t *testing.T, store string) uint64 {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{StoreDir: store, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	nc, err := server.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), topology.EventStream)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// TestUpWithoutItsKey: a chain whose key is gone, or is another chain's, does not start and sign as if it were another chain; with a reason
// a new key of its name signs, which is on record, and what was signed before is checked with the old one.
func TestUpWithoutItsKey(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	key := filepath.Join(store, checkpointKeyFile)
	then := filepath.Join(t.TempDir(), "then.txt")
	u := started(t, "--store", store, "--durability", "interval", "--chain", "shop")
	c := caller{t: t, url: u.ready.NATS}
	c.node("n1")
	c.ok("audit", "checkpoint", "-o", then)
	old := strings.TrimSpace(c.ok("audit", "key").out)
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	kept, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	refused := func(says ...string) {
		t.Helper()
		found := on(t).must(exitFailed, "up", "--store", store, "--durability", "interval", "--listen", "127.0.0.1:0")
		for _, say := range says {
			if !strings.Contains(found.err, say) {
				t.Errorf("it says %q, want %q", found.err, say)
			}
		}
	}
	id := keyID(old)
	refused("there is no key file "+key, "by "+id, "--new-checkpoint-key REASON")
	if _, err := os.Stat(key); !os.IsNotExist(err) {
		t.Errorf("a key was made all the same (%v)", err)
	}
	other := strings.TrimSpace(on(t).ok("audit", "key").out)
	stranger, err := os.ReadFile(filepath.Join(shared.ready.Store, checkpointKeyFile))
	if err == nil {
		err = os.WriteFile(key, stranger, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused(keyID(other), "signed as shop", "move it away first")

	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	u = started(t, "--store", store, "--durability", "interval", "--new-checkpoint-key", "the disk burnt")
	c.url = u.ready.NATS
	now := strings.TrimSpace(c.ok("audit", "key").out)
	if now == old || !strings.HasPrefix(now, "shop+") {
		t.Errorf("the new key is %q, want another one of the same name", now)
	}
	c.node("n2")
	found := c.ok("audit", "verify", "--checkpoint", then, "--key", old+" "+now)
	if !strings.Contains(found.err, "a new key signs: "+keyID(now)+" (the disk burnt)") {
		t.Errorf("of the new key it says %q", found.err)
	}
	if found := c.must(exitFailed, "audit", "verify", "--key", old); !strings.Contains(found.err, "the keys of before") {
		t.Errorf("with the old key alone it says %q", found.err)
	}
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	// It has signed, so it needs no word any more; and the one that was found again still counts.
	started(t, "--store", store, "--durability", "interval").stop()
	if err := os.WriteFile(key, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	started(t, "--store", store, "--durability", "interval").stop()
}

// keyID gives the name of a public key as it stands in signatures.
func keyID(public string) string { return strings.Join(strings.SplitN(public, "+", 3)[:2], "+") }
