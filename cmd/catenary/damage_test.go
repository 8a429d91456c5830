package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"catenary/embedded"
	"catenary/internal/topology"
)

// damaged makes a store with a node in it, ends it, and puts a message into it that nobody of ours wrote.
func damaged(t *testing.T, subject string) (store string) {
	t.Helper()
	store = t.TempDir()
	u := started(t, "--store", store, "--durability", "interval")
	caller{t: t, url: u.ready.NATS}.node("n1")
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
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
	if _, err := nc.RequestMsgWithContext(t.Context(), &nats.Msg{Subject: subject, Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	return store
}

// TestUpWithAForeignMessage: a bucket that somebody else wrote to stops its view alone, and people can find out why.
func TestUpWithAForeignMessage(t *testing.T) {
	t.Parallel()
	u := started(t, "--store", damaged(t, topology.BucketSubject(topology.BucketNodes, "n1")), "--durability", "interval")
	c := caller{t: t, url: u.ready.NATS}
	if log := u.stderr.String(); !strings.Contains(log, "not all of the chain can be read") || !strings.Contains(log, topology.BucketNodes) {
		t.Errorf("the log does not name the bucket:\n%s", log)
	}
	if found := c.must(exitFailed, "verify"); !strings.Contains(found.out, "foreign") || !strings.Contains(found.out, "n1") {
		t.Errorf("verify shows\n%swant the foreign message with its key", found.out)
	}
	// What was recorded is recorded, and the sender is told that it can't be read.
	found := c.ok("send", "node", "register", "--data", `{"node":"n2"}`)
	if !strings.Contains(found.err, "not to be read yet") || !strings.Contains(found.err, topology.BucketNodes) {
		t.Errorf("send says %q, want why it can't be read", found.err)
	}
	c.module("web")
	c.ok("get", "module", "web")
	if code := u.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d:\n%s", code, u.stderr.String())
	}
}

// TestUpWithADamagedStream: nothing runs over a stream that is not whole.
func TestUpWithADamagedStream(t *testing.T) {
	t.Parallel()
	store := damaged(t, "evt.node.n1")
	found := on(t).must(exitFailed, "up", "--store", store, "--listen", "127.0.0.1:0")
	if found.out != "" || !strings.Contains(found.err, "event 3 on evt.node.n1") || !strings.Contains(found.err, "catenary verify --store "+store) {
		t.Errorf("it printed %q and said\n%swant no ready line, the event, and what to do", found.out, found.err)
	}
}

// TestVerifyOfADamagedCopy: what verify says of a copy that differs, mends it.
func TestVerifyOfADamagedCopy(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	run := func(work func(c caller)) {
		t.Helper()
		u := started(t, "--store", store, "--durability", "interval")
		work(caller{t: t, url: u.ready.NATS})
		if code := u.stop(); code != exitOK {
			t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
		}
	}
	run(func(c caller) {
		for _, node := range []string{"n1", "n2", "n3"} {
			c.node(node)
		}
	})
	path := filepath.Join(store, embedded.MirrorPath(topology.BucketNodes))
	flip(t, path, `{"node":"n2"`)
	run(func(c caller) {
		if found := c.must(exitFailed, "verify"); !strings.Contains(found.out, embedded.MirrorPath(topology.BucketNodes)) {
			t.Errorf("verify shows\n%swant where the copy is", found.out)
		}
	})
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	run(func(c caller) { c.ok("verify") })
}

// TestVerifyOfALostTail: what verify says of a bucket that has lost its end is true: a start folds it again.
func TestVerifyOfALostTail(t *testing.T) {
	t.Parallel()
	store, nobody := t.TempDir(), caller{t: t, url: "nats://127.0.0.1:1"}
	run := func(nodes ...string) {
		t.Helper()
		u := started(t, "--store", store, "--durability", "interval")
		c := caller{t: t, url: u.ready.NATS}
		for _, node := range nodes {
			c.node(node)
		}
		c.ok("verify")
		if code := u.stop(); code != exitOK {
			t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
		}
	}
	run("n1", "n2")
	bucket := filepath.Join(store, "jetstream", topology.AccountLedger, "streams", topology.BucketStream(topology.BucketNodes))
	earlier := filepath.Join(t.TempDir(), "earlier")
	if err := os.CopyFS(earlier, os.DirFS(bucket)); err != nil {
		t.Fatal(err)
	}
	run("n3", "n4")
	if err := os.RemoveAll(bucket); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(bucket, os.DirFS(earlier)); err != nil {
		t.Fatal(err)
	}
	found := nobody.must(exitFailed, "verify", "--store", store)
	if !strings.Contains(found.out, "behind") || !strings.Contains(found.err, "catenary up --store "+store) || strings.Contains(found.err, "repair") {
		t.Errorf("verify shows\n%sand says %q, want that a start folds again what is lost", found.out, found.err)
	}
	run()
}

// flip changes one bit of a text in the messages of a stream that is stored at a path.
func flip(t *testing.T, path, text string) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(path, "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		data, err := os.ReadFile(block)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(data, []byte(text)); i >= 0 {
			data[i+len(text)-1] ^= 1
			if err := os.WriteFile(block, data, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no block of %d below %s holds %s", len(blocks), path, text)
}

// TestVerifyOfAStore: a chain that does not run can be checked, and one that no writer starts on must be.
func TestVerifyOfAStore(t *testing.T) {
	t.Parallel()
	nobody := caller{t: t, url: "nats://127.0.0.1:1"}
	whole := t.TempDir()
	u := started(t, "--store", whole, "--durability", "interval")
	caller{t: t, url: u.ready.NATS}.node("n1")
	if running := nobody.must(exitFailed, "verify", "--store", whole); !strings.Contains(running.err, whole) {
		t.Errorf("of a running chain it says %q, want the directory", running.err)
	}
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	nobody.ok("verify", "--store", whole)

	changed := damaged(t, "evt.node.n1")
	if found := nobody.must(exitFailed, "verify", "--store", changed); !strings.Contains(found.out, "evt.node.n1") {
		t.Errorf("verify shows\n%swant the event's subject", found.out)
	}
	if found := nobody.must(exitFailed, "verify", "--store", changed); strings.Contains(found.out, "yes") || !strings.Contains(found.out, "in part") {
		t.Errorf("verify shows\n%swant no bucket to be whole, since nothing after the damage was compared", found.out)
	}
	if none := nobody.must(exitFailed, "verify", "--store", t.TempDir()); !strings.Contains(none.err, "no store") {
		t.Errorf("of an empty directory it says %q", none.err)
	}
}
