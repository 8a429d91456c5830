package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"catenary/chain"
	"catenary/es"
	"catenary/internal/topology"
)

// natsToolVersion is the nats tool that the documentation is written for.
const natsToolVersion = "v0.5.0"

// natsTool builds the nats tool, once for all runs of these tests on a machine.
func natsTool(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "catenary-integration", "nats-"+natsToolVersion)
	path := filepath.Join(dir, "nats")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Built aside and moved into place: another run may do the same at this moment.
	aside, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	build := exec.Command("go", "install", "github.com/nats-io/natscli/nats@"+natsToolVersion)
	build.Dir = aside // outside of this module, whose go.mod does not know the tool
	build.Env = append(os.Environ(), "GOBIN="+aside, "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the nats tool: %v\n%s", err, out)
	}
	if err := os.Rename(filepath.Join(aside, "nats"), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNATSTool does with the nats tool what the documentation shows.
func TestNATSTool(t *testing.T) {
	t.Parallel()
	path := natsTool(t)
	c := on(t, shared)
	run := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env = quietEnv(t.TempDir(), c.url)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...)
		if err != nil {
			t.Fatalf("nats %q: %v\n%s", args, err, out)
		}
		return out
	}
	c.node("nats-laptop")
	c.module("nats-hello")
	c.must(0, "assign", "nats-laptop", "nats-hello", "--package", "hello@1.20")

	watch := watching(t, path, c.url, "kv", "watch", "chain-assignments", "nats-laptop.nats-hello")
	if first := watch(); !strings.Contains(first, `"version":"1.20"`) {
		t.Errorf("nats kv watch shows %q, want what stands", first)
	}
	assign := func(version string) string {
		return fmt.Sprintf(`{"node":"nats-laptop","module":"nats-hello","package":{"name":"hello","version":%q}}`, version)
	}
	var answer es.Answer
	if out := must("req", "--raw", "catenary.cmd.assignment.assign", assign("1.22")); json.Unmarshal([]byte(out), &answer) != nil || answer.Status != es.StatusAccepted {
		t.Errorf("nats req gives %s", out)
	}
	if next := watch(); !strings.Contains(next, `"version":"1.22"`) {
		t.Errorf("nats kv watch goes on with %q, want the new version", next)
	}
	if out := must("req", "--raw", "catenary.cmd.assignment.assign", `{"node":"nats-laptop"}`); json.Unmarshal([]byte(out), &answer) != nil || answer.Status != es.StatusInvalid {
		t.Errorf("nats req of half a command gives %s", out)
	}

	out := must("kv", "ls")
	for _, bucket := range topology.ChainBuckets() {
		if !strings.Contains(out, bucket) {
			t.Errorf("nats kv ls does not show %s:\n%s", bucket, out)
		}
	}
	if out := must("kv", "ls", "chain-assignments"); !strings.Contains(out, "nats-laptop.nats-hello") {
		t.Errorf("nats kv ls chain-assignments:\n%s", out)
	}
	var record chain.Assignment
	if out := must("kv", "get", "chain-assignments", "nats-laptop.nats-hello", "--raw"); json.Unmarshal([]byte(out), &record) != nil || record.Package.Version != "1.22" {
		t.Errorf("nats kv get gives %s", out)
	}
	if out := must("kv", "history", "chain-assignments", "nats-laptop.nats-hello"); strings.Count(out, "PUT") != 2 {
		t.Errorf("nats kv history, want two values:\n%s", out)
	}
	for _, args := range [][]string{{"micro", "ls"}, {"micro", "info", topology.WriterService}, {"micro", "stats", topology.WriterService}, {"micro", "stats", topology.QueryService}} {
		name := args[len(args)-1]
		if name == "ls" {
			name = topology.WriterService
		}
		if out := must(args...); !strings.Contains(out, name) {
			t.Errorf("nats %q does not show %s:\n%s", args, name, out)
		}
	}
	// Who can read can't write.
	for _, args := range [][]string{
		{"kv", "put", "chain-assignments", "nats-laptop.nats-hello", "forged", "--timeout", "500ms"},
		{"kv", "del", "chain-assignments", "nats-laptop.nats-hello", "--force", "--timeout", "500ms"},
		{"kv", "purge", "chain-assignments", "nats-laptop.nats-hello", "--force", "--timeout", "500ms"},
		{"stream", "rm", "KV_chain-assignments", "--force", "--timeout", "500ms"},
		{"stream", "info", "CATENARY", "--timeout", "500ms"},
	} {
		if out, err := run(args...); err == nil {
			t.Errorf("nats %q is not refused:\n%s", args, out)
		}
	}
	if out := must("kv", "get", "chain-assignments", "nats-laptop.nats-hello", "--raw"); !strings.Contains(out, `"version":"1.22"`) {
		t.Errorf("after all that the value is %s", out)
	}
}

// watching runs the nats tool and gives the lines with values that it prints, one by one.
func watching(t *testing.T, path, url string, args ...string) func() string {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = quietEnv(t.TempDir(), url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			if strings.Contains(s.Text(), "PUT") {
				lines <- s.Text()
			}
		}
		_ = cmd.Wait() // it is killed in the end
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for {
			select {
			case <-lines:
			case <-ended:
				return
			}
		}
	})
	return func() string {
		select {
		case l := <-lines:
			return l
		case <-time.After(waitLimit):
			t.Fatalf("nats %q shows nothing", args)
			return ""
		}
	}
}
