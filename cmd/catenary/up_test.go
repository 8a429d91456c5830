package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/embedded"
	"catenary/es"
	"catenary/internal/run"
)

// mostStopTime is how long stopping may take. It takes a hundredth of that on a machine that has nothing else to do.
const mostStopTime = 5 * time.Second

// started starts a chain of the test's own.
func started(t *testing.T, args ...string) *upped {
	t.Helper()
	u, err := startUp(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.cancel)
	return u
}

// serverAt gives the id of the NATS server at an address; empty when there is none. Another test's may have taken the port.
func serverAt(address string) string {
	conn, err := net.DialTimeout("tcp", address, waitLimit)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }() // it was only read
	line, err := bufio.NewReader(conn).ReadString('\n')
	_, id, _ := strings.Cut(line, `"server_id":"`)
	id, _, ok := strings.Cut(id, `"`)
	if err != nil || !ok {
		return ""
	}
	return id
}

func TestUp(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "new", "store")
	u := started(t, "--store", store)
	want := fmt.Sprintf(`{"ready":true,"nats":%q,"store":%q}`+"\n", u.ready.NATS, store)
	if diff := cmp.Diff(want, u.line); diff != "" {
		t.Errorf("ready line (-want +found):\n%s", diff)
	}
	c := caller{t: t, url: u.ready.NATS}
	c.node("kept")

	// The store belongs to one process, the port too.
	if found := c.must(exitFailed, "up", "--store", store, "--listen", "127.0.0.1:0"); !strings.Contains(found.err, "held by another running process") {
		t.Errorf("a second process over the store says %q", found.err)
	}
	address := strings.TrimPrefix(u.ready.NATS, "nats://")
	if found := c.must(exitFailed, "up", "--store", t.TempDir(), "--listen", address); !strings.Contains(found.err, address) {
		t.Errorf("a second process on the port says %q, want the address in it", found.err)
	}

	if _, err := os.Stat(filepath.Join(store, run.AuditFile)); err != nil {
		t.Errorf("there is no audit store: %v", err)
	}

	server := serverAt(address)
	if server == "" {
		t.Error("no server says at the address who it is")
	}
	begin := time.Now()
	if code := u.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d, want %d:\n%s", code, exitOK, u.stderr.String())
	}
	if took := time.Since(begin); took > mostStopTime {
		t.Errorf("stopping took %v", took)
	}
	if rest := <-u.rest; rest != "" {
		t.Errorf("after the ready line it printed %q", rest)
	}
	if found := serverAt(address); found == server {
		t.Error("it still listens after the end")
	}

	if err := os.Remove(filepath.Join(store, run.AuditFile)); err != nil { // it can be made again at any time
		t.Error(err)
	}
	again := started(t, "--store", store, "--durability", "interval", "--no-audit")
	c = caller{t: t, url: again.ready.NATS}
	c.ok("get", "node", "kept")
	if found := c.ok("verify"); !strings.Contains(found.err, "the record holds") {
		t.Errorf("verify says %q", found.err)
	}
	if _, err := os.Stat(filepath.Join(store, run.AuditFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with --no-audit there is an audit store (%v)", err)
	}
	if code := again.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d, want %d:\n%s", code, exitOK, again.stderr.String())
	}
}

// TestDemo: the demo is there when up is ready, tells a newcomer what to do, and comes only once.
func TestDemo(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	u := started(t, "--store", store, "--durability", "interval", "--demo")
	c := caller{t: t, url: u.ready.NATS}
	before := map[string]string{}
	for _, k := range kinds() {
		before[k.plural] = c.ok("get", k.plural, "--all", "-o", "json").out
		var records []json.RawMessage
		if err := json.Unmarshal([]byte(before[k.plural]), &records); err != nil || len(records) == 0 {
			t.Errorf("the demo has %d %s (%v), want some", len(records), k.plural, err)
		}
	}
	if found := c.ok("verify"); !strings.Contains(found.err, "the record holds") {
		t.Errorf("verify says %q", found.err)
	}
	// The commands of the guide work as they stand there, but for the one that is to be refused.
	guide := u.stderr.String()
	if !strings.Contains(guide, "export NATS_URL="+u.ready.NATS) {
		t.Errorf("the guide does not tell where the bus is:\n%s", guide)
	}
	commands := 0
	for line := range strings.Lines(guide) {
		command, ok := strings.CutPrefix(line, "  catenary ")
		if !ok || strings.HasPrefix(command, "verify") {
			continue
		}
		commands++
		want := exitOK
		if strings.Contains(command, "forget") {
			want = exitRefused
		}
		c.must(want, words(command)...)
	}
	if commands < 5 {
		t.Errorf("the guide has %d commands:\n%s", commands, guide)
	}
	u.stop()

	u = started(t, "--store", store, "--durability", "interval", "--demo")
	c = caller{t: t, url: u.ready.NATS}
	delete(before, "assignments") // the guide has added one
	for plural, want := range before {
		if diff := cmp.Diff(want, c.ok("get", plural, "--all", "-o", "json").out); diff != "" {
			t.Errorf("after a second start, %s (-before +after):\n%s", plural, diff)
		}
	}
	if log := u.stderr.String(); !strings.Contains(log, "recorded=0") || strings.Contains(log, "does not fit") {
		t.Errorf("a second start says\n%s", log)
	}
	u.stop()
}

// words splits a command as a shell does, as far as the guide needs it.
func words(command string) []string {
	var list []string
	quote, word := rune(0), strings.Builder{}
	for _, r := range strings.TrimSpace(command) + " " {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ':
			list = append(list, word.String())
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return list
}

// TestUpBeyondLoopback: who may connect is no longer whoever may use this machine.
func TestUpBeyondLoopback(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	u := started(t, "--store", store, "--durability", "interval", "--listen", "0.0.0.0:0")
	c := caller{t: t, url: u.ready.NATS}
	c.must(exitDenied, "get", "nodes")
	credentials, err := embedded.ReadCredentials(filepath.Join(store, "operator.json"))
	if err != nil {
		t.Fatal(err)
	}
	c = c.with(map[string]string{"NATS_USER": credentials.User, "NATS_PASSWORD": credentials.Password})
	c.node("far")
	c.ok("get", "node", "far")
	if log := u.stderr.String(); !strings.Contains(log, "operator.json") || !strings.Contains(log, "NATS_PASSWORD") {
		t.Errorf("the log does not tell where the credentials are and how to use them:\n%s", log)
	}
	u.stop()
}

// TestReadYourWrites: what a command has recorded is there for the next one, every time.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("ryw")
	c.module("ryw")
	for n := range 20 {
		version := fmt.Sprint("1.", n)
		answer := read[es.Answer](c, "assign", "ryw", "ryw", "--package", "ryw@"+version)
		if found := read[chain.Assignment](c, "get", "assignment", "ryw", "ryw"); found.Package.Version != version {
			t.Fatalf("after event %d the version is %s, want %s", answer.Sequence, found.Package.Version, version)
		}
	}
}
