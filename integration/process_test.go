package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/es/estest"
)

// quietEnv is the environment of every process: nothing of the machine's own settings but what finds programs.
func quietEnv(home, url string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "TZ=UTC", "NO_COLOR=1", "NATS_URL=" + url}
}

// chainProcess is a running `catenary up`.
type chainProcess struct {
	url, store string
	cmd        *exec.Cmd
	stderr     *estest.Log
	// ended is closed when the process is gone, with err how.
	ended chan struct{}
	err   error
}

// startChain starts `catenary up` and waits until it can be used.
func startChain(store, listen, durability string) (*chainProcess, error) {
	cmd := exec.Command(filepath.Join(binaries, "catenary"), "up", "--store", store, "--listen", listen, "--durability", durability)
	cmd.Env = quietEnv(filepath.Dir(store), "")
	return startProcess(cmd)
}

// startProcess starts a command that becomes `catenary up`, and waits until the chain can be used.
func startProcess(cmd *exec.Cmd) (*chainProcess, error) {
	c := &chainProcess{cmd: cmd, stderr: &estest.Log{}, ended: make(chan struct{})}
	c.cmd.Stderr = c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string, 1)
	go func() {
		defer close(c.ended)
		r := bufio.NewReader(out)
		if line, err := r.ReadString('\n'); err == nil {
			lines <- line
		}
		_, _ = io.Copy(io.Discard, r)
		c.err = c.cmd.Wait()
	}()
	select {
	case line := <-lines:
		var ready struct{ NATS, Store string }
		if err := json.Unmarshal([]byte(line), &ready); err != nil {
			return nil, fmt.Errorf("the ready line is %q: %w", line, err)
		}
		c.url, c.store = ready.NATS, ready.Store
		return c, nil
	case <-c.ended:
		return nil, fmt.Errorf("catenary up ended (%v) without being ready:\n%s", c.err, c.stderr)
	case <-time.After(waitLimit):
		c.kill()
		return nil, fmt.Errorf("catenary up is not ready after %s:\n%s", waitLimit, c.stderr)
	}
}

// stop ends the process as a person would.
func (c *chainProcess) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.ended:
		if c.err != nil {
			return fmt.Errorf("catenary up: %w\n%s", c.err, c.stderr)
		}
		return nil
	case <-time.After(waitLimit):
		c.kill()
		return fmt.Errorf("catenary up did not end within %s:\n%s", waitLimit, c.stderr)
	}
}

// kill ends the process as a crash would, and waits until it is gone.
func (c *chainProcess) kill() {
	_ = c.cmd.Process.Kill() // it may be gone already
	<-c.ended
}

// up starts a chain that ends with the test.
func up(t *testing.T, store, listen, durability string) *chainProcess {
	t.Helper()
	c, err := startChain(store, listen, durability)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// down stops a chain, which must succeed.
func (c *chainProcess) down(t *testing.T) {
	t.Helper()
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
}

// Between these, systems give no port to who asks for any: one that is free now stays so until it is used.
const firstFreePort, lastFreePort = 15000, 30000

var givenPorts struct {
	sync.Mutex
	ports map[int]bool
}

// freeAddress gives a loopback address that nobody listens on, to one test only, for a server that is to come back under it.
func freeAddress(t *testing.T) string {
	t.Helper()
	givenPorts.Lock()
	defer givenPorts.Unlock()
	if givenPorts.ports == nil {
		givenPorts.ports = map[int]bool{}
	}
	for range 1000 {
		port := firstFreePort + rand.IntN(lastFreePort-firstFreePort)
		if givenPorts.ports[port] {
			continue
		}
		givenPorts.ports[port] = true
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", address); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// tool calls the catenary binary against a chain.
type tool struct {
	t   *testing.T
	url string
	// env holds credentials, where the chain asks for some.
	env []string
}

func on(t *testing.T, c *chainProcess) tool { return tool{t: t, url: c.url} }

// called is what a call gave.
type called struct {
	code     int
	out, err string
}

func (c tool) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	var out, talk bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "catenary"), args...)
	cmd.Env = append(quietEnv(binaries, c.url), c.env...)
	cmd.Stdout, cmd.Stderr = &out, &talk
	return cmd, &out, &talk
}

func (c tool) feed(stdin string, args ...string) called {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*waitLimit)
	defer cancel()
	cmd, out, talk := c.command(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.t.Fatalf("catenary %.200q: %v", args, err)
	}
	return called{code: cmd.ProcessState.ExitCode(), out: out.String(), err: talk.String()}
}

// must calls the tool and fails the test unless it exits with the code.
func (c tool) must(code int, args ...string) called {
	c.t.Helper()
	got := c.feed("", args...)
	if got.code != code {
		c.t.Fatalf("catenary %.300q: exit code %d, want %d\n%.2000s%.2000s", args, got.code, code, got.out, got.err)
	}
	return got
}

// until waits until something is so.
func (c tool) until(what string, so func() bool) {
	c.t.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-late:
			c.t.Fatalf("after %s it is not so: %s", waitLimit, what)
		}
	}
}

// read calls the tool with -o json and reads what it prints.
func read[T any](c tool, args ...string) T {
	c.t.Helper()
	got := c.must(0, append([]string{"-o", "json"}, args...)...)
	var v T
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		c.t.Fatalf("catenary %.300q printed %.500s: %v", args, got.out, err)
	}
	return v
}

// node and module make one known.
func (c tool) node(name string)   { c.register("node", name) }
func (c tool) module(name string) { c.register("module", name) }

func (c tool) register(kind, name string) {
	c.t.Helper()
	body, err := json.Marshal(map[string]string{kind: name})
	if err != nil {
		c.t.Fatal(err)
	}
	c.must(0, "send", kind, "register", "--data", string(body))
}

// connect gives a connection of the kind people have.
func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	// What the server refuses is looked at by its effect; the client would print each refusal.
	nc, err := nats.Connect(url, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
