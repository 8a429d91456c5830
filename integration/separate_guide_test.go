package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/internal/topology"
)

// TestSeparateProcessesGuide goes through the guide on separate processes, line by line, with a server of its own.
func TestSeparateProcessesGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/guides/separate-processes.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), freeAddress(t)
	env := append(quietEnv(dir, ""), "PATH="+binaries+":"+filepath.Dir(buildServer(t))+":"+os.Getenv("PATH"))
	// What stays, with the words that say that it can be used.
	ready := map[string]string{"nats-server": "Server is ready", "writer": "commands are taken", "projector": "queries are answered"}
	stay := func(program, line string) {
		t.Helper()
		said := &estest.Log{}
		cmd := exec.Command("bash", "-c", "exec "+line)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // what it said shows how it ended
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
			select {
			case <-ended:
			case <-time.After(waitLimit):
				t.Errorf("%s does not end", program)
				_ = cmd.Process.Kill()
				<-ended
			}
		})
		tick, late := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
		defer tick.Stop()
		for !strings.Contains(said.String(), ready[program]) {
			select {
			case <-tick.C:
			case <-ended:
				t.Fatalf("%s has ended:\n%s", program, said)
			case <-late:
				t.Fatalf("%s does not say %q:\n%s", program, ready[program], said)
			}
		}
	}
	steps := 0
	for _, block := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.ReplaceAll(strings.TrimSpace(line), "127.0.0.1:4222", address)
			steps++
			if program, _, _ := strings.Cut(line, " "); ready[program] != "" {
				stay(program, line)
				continue
			}
			cmd := exec.Command("bash", "-c", line)
			var out, said bytes.Buffer
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &said
			if err := cmd.Run(); err != nil || out.Len() == 0 {
				t.Fatalf("%s: %v, and it shows\n%s%s", line, err, &out, &said)
			}
			if strings.Contains(line, "get assignments") && !strings.Contains(out.String(), "web@1.20") {
				t.Errorf("%s shows\n%s", line, &out)
			}
			if strings.Contains(line, "log --limit 1") && !strings.Contains(out.String(), "ann") {
				t.Errorf("%s shows\n%swant who did it", line, &out)
			}
		}
	}
	if steps < 9 {
		t.Errorf("the guide has %d steps: is it still found?", steps)
	}
	agentHears(t, "nats://"+address, filepath.Join(dir, "deploy", "agent.edge-1.env"), func() {
		cmd := exec.Command("bash", "-c", "env $(cat deploy/ann.env) catenary assign edge-1 web --package web@1.21")
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("assign: %v\n%s", err, out)
		}
	})
}

// buildServer builds a nats-server, and gives its path.
func buildServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats-server")
	build := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	return path
}

// agentHears connects as an agent and makes sure that it is told what is done then.
func agentHears(t *testing.T, url, file string, do func()) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	credentials := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		credentials[name] = value
	}
	if credentials["NATS_URL"] != url {
		t.Errorf("the agent is sent to %s, want %s", credentials["NATS_URL"], url)
	}
	nc, err := nats.Connect(url, nats.UserInfo(credentials["NATS_USER"], credentials["NATS_PASSWORD"]))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	heard, err := nc.SubscribeSync(topology.ToldSubject("edge-1", "*"))
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	do()
	m, err := heard.NextMsg(waitLimit)
	if err != nil {
		t.Fatal(err)
	}
	if _, e, err := natskv.ReadRepublished(m); err != nil || e.Key != "edge-1.web" || !strings.Contains(string(e.Value), `"1.21"`) {
		t.Errorf("the agent is told %s of %s, %v", e.Value, e.Key, err)
	}
}
