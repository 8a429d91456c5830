package integration

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"catenary/agent/desk"
	"catenary/audit"
	"catenary/chain"
	"catenary/es/estest"
	"catenary/events"
)

// agentProcess is a running agent, which can be killed and started again over what it has kept.
type agentProcess struct {
	t      *testing.T
	url    string
	node   string
	dir    string
	config string
	env    []string
	cmd    *exec.Cmd
	talk   *estest.Log
	ended  chan struct{}
}

// newAgent configures an agent that unpacks artifacts.
func newAgent(t *testing.T, c tool, node string) *agentProcess {
	t.Helper()
	dir := t.TempDir()
	a := newAgentIn(t, c, node, dir, filepath.Join(dir, "agent.yaml"))
	for _, dir := range []string{"artifacts", "apps"} {
		if err := os.Mkdir(filepath.Join(a.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf("node: %s\nstate: %s/state\nevery: 200ms\nobserve: 1s\nartifacts: %s/artifacts\ndrivers:\n  - {kind: dir, name: files, root: %s/apps, keep: 2}\n", node, a.dir, a.dir, a.dir)
	if err := os.WriteFile(a.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// newAgentIn gives an agent with a configuration that is there, which runs in a folder.
func newAgentIn(t *testing.T, c tool, node, dir, config string) *agentProcess {
	t.Helper()
	a := &agentProcess{t: t, url: c.url, node: node, dir: dir, config: config, talk: &estest.Log{}}
	t.Cleanup(func() {
		if a.cmd != nil {
			a.kill()
		}
	})
	return a
}

// artifact makes an artifact that says its version, and gives its digest.
func (a *agentProcess) artifact(version string) string {
	a.t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: "version", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(version))})
	if err == nil {
		_, err = w.Write([]byte(version))
	}
	if err == nil {
		err = w.Close()
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))
	if err == nil {
		err = os.WriteFile(filepath.Join(a.dir, "artifacts", digest), b.Bytes(), 0o600)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return "sha256:" + digest
}

func (a *agentProcess) start() {
	a.t.Helper()
	a.cmd = exec.Command(filepath.Join(binaries, "agent"), "--config", a.config)
	a.cmd.Env, a.cmd.Dir = append(quietEnv(a.dir, a.url), a.env...), a.dir
	a.cmd.Stderr = a.talk
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}(a.cmd, a.ended)
}

func (a *agentProcess) kill() {
	_ = a.cmd.Process.Kill() // it may be gone already
	<-a.ended
	a.cmd = nil
}

func (a *agentProcess) stop() {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	select {
	case <-a.ended:
	case <-time.After(waitLimit):
		a.t.Fatalf("the agent does not end:\n%s", a.talk)
	}
	if code := a.cmd.ProcessState.ExitCode(); code != 0 {
		a.t.Errorf("the agent ended with %d:\n%s", code, a.talk)
	}
	a.cmd = nil
}

// runs is the version that a module's link leads to.
func (a *agentProcess) runs(module string) string {
	text, err := os.ReadFile(filepath.Join(a.dir, "apps", module, "current", "version"))
	if err != nil {
		return ""
	}
	return string(text)
}

// TestAgentKilled kills an agent again and again at random moments while it is told one version after another. In the end it runs the last
// one; each instruction was reported as applied once at most, and the last one was (case E14, the agent's side).
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to repeat the kills: -kill-seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := on(t, shared)
	c.node("killed-agent")
	c.module("killed-app")
	a := newAgent(t, c, "killed-agent")
	var last string
	a.start()
	for n := range *agentKills {
		last = fmt.Sprintf("v%d", n)
		c.must(0, "assign", "killed-agent", "killed-app", "--artifact", a.artifact(last), "--wait=false")
		tell := time.NewTimer(time.Duration(random.IntN(60)) * time.Millisecond)
		<-tell.C
		a.kill()
		a.start()
	}
	c.must(0, "node", "wait-converged", "killed-agent", "--timeout", "60s")
	if found := a.runs("killed-app"); found != last {
		t.Errorf("it runs %q, want %s", found, last)
	}
	a.stop()

	var told []uint64
	applied := map[uint64]int{}
	for _, item := range read[[]audit.Item](c, "log", "--node", "killed-agent", "--module", "killed-app", "--events") {
		switch item.Type {
		case events.TypeAssignmentAssigned:
			told = append(told, item.Sequence)
		case events.TypeAssignmentApplied:
			var seen events.AssignmentApplied
			if err := json.Unmarshal(item.Data, &seen); err != nil {
				t.Fatal(err)
			}
			applied[seen.Source]++
		default:
			t.Errorf("event %d is %s: %s", item.Sequence, item.Type, item.Data)
		}
	}
	slices.Sort(told)
	if len(told) != *agentKills || applied[told[len(told)-1]] != 1 {
		t.Errorf("told by %v, applied are %v", told, applied)
	}
	for source, times := range applied {
		if times != 1 || !slices.Contains(told, source) {
			t.Errorf("instruction %d is reported as applied %d times", source, times)
		}
	}
}

// TestAgentKilledAtWork kills an agent while its command is at work, which then would come to its end after what the node is told next.
func TestAgentKilledAtWork(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	c.node("busy-agent")
	c.module("busy-app")
	dir := t.TempDir()
	a := newAgentIn(t, c, "busy-agent", dir, filepath.Join(dir, "agent.yaml"))
	const apply = `if [ ! -e began ]; then echo $$ >began.new; mv began.new began; while [ ! -e go-on ]; do sleep 0.1; done; fi; echo "$CATENARY_VERSION" >runs`
	text := fmt.Sprintf("node: busy-agent\nstate: %s/state\nevery: 200ms\nobserve: 1s\ndrivers:\n  - kind: exec\n    name: script\n    dir: %s\n    apply: [sh, -c, %q]\n    observe: [sh, -c, \"test ! -e runs || cat runs\"]\n", dir, dir, apply)
	if err := os.WriteFile(a.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.start()
	c.must(0, "assign", "busy-agent", "busy-app", "--package", "busy-app@1", "--wait=false")
	var pid string
	c.until("the command to be at work", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "began"))
		pid = strings.TrimSpace(string(text))
		return err == nil
	})
	a.kill()
	if _, err := os.Stat(filepath.Join("/proc", pid)); err != nil {
		t.Fatalf("the command went with its agent: %v", err)
	}
	c.must(0, "assign", "busy-agent", "busy-app", "--package", "busy-app@2", "--wait=false")
	a.start()
	c.must(0, "node", "wait-converged", "busy-agent", "--timeout", "60s")
	if text, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline")); err == nil && len(text) > 0 {
		t.Errorf("the command of before runs on beside what was told later")
	}
	if err := os.WriteFile(filepath.Join(dir, "go-on"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(text) != "2\n" {
		t.Errorf("it runs %q, %v", text, err)
	}
	if !strings.Contains(a.talk.String(), "had left at work were ended") {
		t.Errorf("nothing is said of it:\n%s", a.talk)
	}
	a.stop()
}

// TestAgentOverABusThatGoesAway restarts the server under an agent, and starts one before there is a server: nobody has to help.
func TestAgentOverABusThatGoesAway(t *testing.T) {
	t.Parallel()
	address, store := freeAddress(t), filepath.Join(t.TempDir(), "store")
	c := tool{t: t, url: "nats://" + address}
	a := newAgent(t, c, "n1")
	a.start()
	chain := up(t, store, address, "interval")
	c.node("n1")
	c.module("app")
	c.must(0, "assign", "n1", "app", "--artifact", a.artifact("one"))
	c.must(0, "node", "wait-converged", "--timeout", "60s")
	for _, version := range []string{"two", "three"} {
		chain.kill()
		chain = up(t, store, address, "interval")
		c.must(0, "assign", "n1", "app", "--artifact", a.artifact(version))
		c.must(0, "node", "wait-converged", "--timeout", "60s")
		if found := a.runs("app"); found != version {
			t.Errorf("it runs %q, want %s", found, version)
		}
	}
	if n := read[desk.Node](c, "node", "show", "n1"); n.State != desk.On || n.Status.Stale != 0 {
		t.Errorf("the node is %+v", n)
	}
	c.must(0, "unassign", "n1", "app")
	c.must(0, "node", "wait-converged", "--timeout", "60s")
	if found := a.runs("app"); found != "" {
		t.Errorf("it runs %q and is told not to", found)
	}
	a.stop()
	chain.down(t)
}

// TestOffForTwoRollouts keeps an agent away while two rollouts go over the fleet, of which the second replaces the first. When it is back it
// comes to what the last one carries, once, and never to the other; both rollouts have come to their end (case E25).
func TestOffForTwoRollouts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := on(t, up(t, filepath.Join(dir, "store"), "127.0.0.1:0", "interval"))
	strategy := filepath.Join(dir, "all.yaml")
	if err := os.WriteFile(strategy, []byte("tiers: [{name: all}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.module("app")
	agents := map[string]*agentProcess{}
	for _, n := range []string{"away", "there"} {
		c.node(n)
		agents[n] = newAgent(t, c, n)
		agents[n].start()
	}
	roll := func(id, version string, more ...string) {
		t.Helper()
		digest := ""
		for _, a := range agents {
			digest = a.artifact(version)
		}
		c.must(0, "record", "publication", digest, "--module", "app")
		c.must(0, append([]string{"rollout", "plan", "--set", "app=" + digest, "--everywhere", "--strategy", strategy, "--as", id}, more...)...)
		c.must(0, "rollout", "start", id)
	}
	roll("first", "one")
	c.must(0, "rollout", "wait", "first", "--timeout", "60s")
	away, there := agents["away"], agents["there"]
	away.stop()
	// The engine must have heard that it is off; the second one is told to nobody else.
	c.until("away is off", func() bool { return read[desk.Node](c, "node", "show", "away").State == desk.Off })
	roll("second", "two")
	c.until("the second one is on the node that is there", func() bool { return there.runs("app") == "two" })
	roll("third", "three", "--supersedes", "second")
	c.until("the third one is on the node that is there", func() bool { return there.runs("app") == "three" })
	if found := away.runs("app"); found != "one" {
		t.Errorf("off, it runs %q", found)
	}
	away.start()
	c.must(0, "rollout", "wait", "third", "--timeout", "60s")
	c.must(0, "node", "wait-converged", "--timeout", "60s")
	if found := away.runs("app"); found != "three" {
		t.Errorf("back, it runs %q", found)
	}
	if state := read[chain.Rollout](c, "get", "rollout", "second").State; state != chain.RolloutSuperseded {
		t.Errorf("the second rollout is %s", state)
	}
	var rollouts []string
	for _, item := range read[[]audit.Item](c, "log", "--node", "away", "--module", "app", "--events") {
		if item.Type == events.TypeAssignmentApplied {
			var seen events.AssignmentApplied
			if err := json.Unmarshal(item.Data, &seen); err != nil {
				t.Fatal(err)
			}
			rollouts = append(rollouts, seen.Rollout)
		}
	}
	if slices.Sort(rollouts); !slices.Equal(rollouts, []string{"first", "third"}) {
		t.Errorf("it has applied %v, want the first and the third once each", rollouts)
	}
}
