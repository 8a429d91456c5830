package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigure writes what only its owner reads, keeps keys and passwords when it is run again, and refuses what can't work. That a server takes it,
// and what the parts do with it, is tested with the guide on separate processes.
func TestConfigure(t *testing.T) {
	t.Parallel()
	nobody := caller{t: t, url: "nats://127.0.0.1:1"}
	dir := filepath.Join(t.TempDir(), "deploy")
	first := nobody.ok("configure", dir, "--person", "ann")
	kept := map[string]string{}
	for _, path := range strings.Fields(first.out) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, ".conf") {
			kept[path] = string(text)
		}
	}
	if len(kept) != 5 {
		t.Errorf("it wrote\n%s", first.out)
	}
	again := nobody.ok("configure", dir, "--person", "ann", "--agent", "edge 1")
	if !strings.Contains(again.out, "agent.edge=201.env") {
		t.Errorf("with an agent it wrote\n%s", again.out)
	}
	for path, before := range kept {
		if now, err := os.ReadFile(path); err != nil || string(now) != before {
			t.Errorf("%s is another one, %v", path, err)
		}
	}
	conf, err := os.ReadFile(filepath.Join(dir, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`user: "agent.edge=201"`, `"told.edge=201.*"`, `user: "ann"`, "nkey: \"U", "sync_interval: always"} {
		if !strings.Contains(string(conf), want) {
			t.Errorf("the configuration lacks %s", want)
		}
	}
	for path := range kept {
		if _, password, ok := strings.Cut(kept[path], passwordLine); ok && strings.Contains(string(conf), strings.TrimSpace(password)) {
			t.Errorf("the configuration has the password of %s", path)
		}
	}
	for _, usage := range [][]string{
		{}, {dir, "--listen", "x"}, {dir, "--durability", "none"}, {dir, "--store-bytes", "1000"}, {dir, "--person", "a b"}, {dir, "--person", "ann", "--person", "ann"}, {dir, "--agent", ""},
	} {
		nobody.must(exitUsage, append([]string{"configure"}, usage...)...)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.nk"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := nobody.must(exitFailed, "configure", dir); !strings.Contains(found.err, "remove it") {
		t.Errorf("over a broken key it says %q", found.err)
	}
}
