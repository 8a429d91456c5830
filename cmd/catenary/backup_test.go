package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/agent/depot"
	"catenary/embedded"
	"catenary/es/estest"
	"catenary/internal/backup"
	"catenary/internal/run"
	"catenary/internal/topology"
)

// digests gives what verify finds each bucket to be.
func digests(c caller) map[string]string {
	c.t.Helper()
	found := map[string]string{}
	for _, b := range read[verification](c, "verify").Buckets {
		found[b.Bucket] = b.Digest
	}
	return found
}

// TestBackupAndRestore takes a backup of a chain that runs and of one that does not, restores it, and goes on.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	store, dir := t.TempDir(), t.TempDir()
	u := started(t, "--store", store, "--durability", "interval", "--no-engine")
	c := caller{t: t, url: u.ready.NATS}
	c.module("web")
	for _, node := range []string{"n1", "n2", "n3"} {
		c.node(node)
		c.ok("assign", node, "web", "--package", "web@1.20")
	}
	file := filepath.Join(t.TempDir(), "app.tgz")
	if err := os.WriteFile(file, bytes.Repeat([]byte("published "), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok("publish", file, "--module", "web", "--commit", "abc", "--name", "web", "--version", "1.21")
	c.ok("audit", "checkpoint")
	before := digests(c)
	running, stopped := filepath.Join(dir, "running"), filepath.Join(dir, "stopped")
	m := read[backup.Manifest](c, "backup", running, "--artifacts")
	if m.Head.Sequence < 10 || len(m.ArtifactFiles()) != 1 || m.Chain == "" {
		t.Errorf("the backup is %+v", m)
	}
	if found := c.must(exitRefused, "backup", running); !strings.Contains(found.err, "already") {
		t.Errorf("a second backup into it says %q", found.err)
	}
	c.must(exitNotFound, "restore", dir, "--store", filepath.Join(dir, "s"))
	c.must(exitUsage, "restore", running)
	c.must(exitRefused, "restore", running, "--store", store)
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	nobody := caller{t: t, url: "nats://127.0.0.1:1"}
	nobody.must(exitUnreachable, "backup", filepath.Join(dir, "none"))
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a backup that failed has left something")
	}
	if again := read[backup.Manifest](nobody, "backup", stopped, "--store", store, "--artifacts"); again.Head != m.Head || len(again.ArtifactFiles()) != 1 {
		t.Errorf("of the stopped chain the backup is %+v", again)
	}

	for _, from := range []string{running, stopped} {
		restored := filepath.Join(dir, "from-"+filepath.Base(from))
		nobody.ok("restore", from, "--store", restored)
		if key, err := os.ReadFile(filepath.Join(store, checkpointKeyFile)); err != nil || os.WriteFile(filepath.Join(restored, checkpointKeyFile), key, 0o600) != nil {
			t.Fatal(err)
		}
		u := started(t, "--store", restored, "--durability", "interval", "--no-engine")
		c := caller{t: t, url: u.ready.NATS}
		if diff := cmp.Diff(before, digests(c)); diff != "" {
			t.Errorf("the buckets differ (-before +restored):\n%s", diff)
		}
		c.ok("audit", "verify")
		if got := c.ok("send", "node", "register", "--data", `{"node":"after"}`); !strings.Contains(got.out, `"sequence":`+number(m.Head.Sequence+2)+`,`) {
			t.Errorf("after %d events and the writer's start it goes on with %s", m.Head.Sequence, got.out)
		}
		if artifacts := read[[]depot.Stored](c, "artifacts", "ls"); len(artifacts) != 1 || artifacts[0].File != "app.tgz" {
			t.Errorf("the artifacts are %+v", artifacts)
		}
		c.ok("verify")
		if code := u.stop(); code != exitOK {
			t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
		}
	}
}

// TestRestoreOfADamagedBackup leaves nothing behind.
func TestRestoreOfADamagedBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := filepath.Join(dir, "b")
	on(t).ok("backup", b)
	files, err := filepath.Glob(filepath.Join(b, "events-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the files are %v, error %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	if found := on(t).must(exitFailed, "restore", b, "--store", store); !strings.Contains(found.err, filepath.Base(files[0])) || !strings.Contains(found.err, "nothing was written") {
		t.Errorf("it says %q", found.err)
	}
	if _, err := os.Stat(store); err == nil {
		t.Errorf("%s is there", store)
	}
	on(t).must(exitUsage, "backup", "")
	on(t).must(exitUsage, "restore", "", "--store", store)
}

// TestAnInterruptedRestore: nobody starts over what is there of it, not even while that is nothing, and the same backup goes on. The directory
// stays the one it was: it may be where a disk is mounted.
func TestAnInterruptedRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, store := filepath.Join(dir, "b"), t.TempDir()
	m := read[backup.Manifest](on(t), "backup", b)
	if err := os.Mkdir(filepath.Join(store, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(store)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(says string) {
		t.Helper()
		for _, args := range [][]string{{"up", "--store", store, "--listen", "127.0.0.1:0"}, {"backup", filepath.Join(dir, "none"), "--store", store}, {"verify", "--store", store}} {
			if found := on(t).must(exitFailed, args...); !strings.Contains(found.err, "being restored") && !strings.Contains(found.err, says) {
				t.Errorf("%s says %q", args[0], found.err)
			}
		}
	}
	if err := embedded.BeginRestore(store); err != nil {
		t.Fatal(err)
	}
	refused("there is no store") // nothing is written yet
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	err = (&app{}).withStore(ctx, embedded.Config{StoreDir: store, Restoring: true, Logger: log}, func(server *embedded.Server, nc *nats.Conn) error {
		if found := on(t).must(exitFailed, "restore", b, "--store", store); !strings.Contains(found.err, "held by another") || strings.Contains(found.err, "remove") {
			t.Errorf("beside one that is at work it says %q", found.err)
		}
		return run.Restore(ctx, m, b, backup.Target{Conn: nc, Streams: server.Options(), Progress: func(backup.Progress) { cancel() }}, log)
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it was not interrupted: %v", err)
	}
	refused("being restored")
	on(t).ok("restore", b, "--store", store)
	if after, err := os.Stat(store); err != nil || !os.SameFile(before, after) {
		t.Errorf("the directory is another one, error %v", err)
	}
	u := started(t, "--store", store, "--durability", "interval", "--no-engine", "--new-checkpoint-key", "the key is no part of a backup")
	caller{t: t, url: u.ready.NATS}.ok("verify")
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	on(t).must(exitRefused, "restore", b, "--store", store)
}

// TestRestoreOntoAServer restores a chain onto a server of its own, as its settings say.
func TestRestoreOntoAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := filepath.Join(dir, "b")
	m := read[backup.Manifest](on(t), "backup", b)
	bus := estest.Server(t, false)
	settings := filepath.Join(dir, "catenary.yaml")
	if err := os.WriteFile(settings, []byte("server: "+bus.URL()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	on(t).ok("restore", b, "--config", settings)
	js, err := jetstream.New(bus.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), topology.EventStream)
	if err != nil {
		t.Fatal(err)
	}
	if last := stream.CachedInfo().State.LastSeq; last != m.Head.Sequence {
		t.Errorf("it ends at event %d, want %d", last, m.Head.Sequence)
	}
	if found := on(t).must(exitRefused, "restore", b, "--config", settings); !strings.Contains(found.err, topology.EventStream) {
		t.Errorf("a second time it says %q", found.err)
	}
	// A stream that no writer starts on can be saved all the same: nobody takes this back.
	unsafe := stream.CachedInfo().Config
	unsafe.AllowMsgTTL = true
	if _, err := js.UpdateStream(t.Context(), unsafe); err != nil {
		t.Fatal(err)
	}
	if again := read[backup.Manifest](on(t), "backup", filepath.Join(dir, "again"), "--config", settings); again.Head != m.Head {
		t.Errorf("backed up as the ledger's user it ends at %v, want %v", again.Head, m.Head)
	}
}

// TestStoreIsWatched: whoever asks how the chain is hears of its store.
func TestStoreIsWatched(t *testing.T) {
	t.Parallel()
	found := on(t).call("doctor", "--all", "-o", "json")
	for _, check := range []string{"room", "guard", "event store"} {
		if !strings.Contains(found.out, ": "+check+`"`) {
			t.Errorf("of %s it says nothing:\n%s", check, found.out)
		}
	}
}
