package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"catenary/es/estest"
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

// shared is the chain that most tests of the package use, each with names of its own: starting one for each test would take
// most of their time.
var shared *upped

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "catenary-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if shared, err = startUp("--store", dir, "--durability", "interval", "--no-engine"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if exit := shared.stop(); exit != exitOK {
		fmt.Fprintf(os.Stderr, "the shared chain ended with %d:\n%s", exit, shared.stderr.String())
		return 1
	}
	// A server that is stopped while it makes a mirror waits on for that for up to half a minute.
	if err := estest.Leaks(goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*stream).setupMirrorConsumer.func3")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// upped is a running `catenary up`.
type upped struct {
	ready struct {
		Ready bool   `json:"ready"`
		NATS  string `json:"nats"`
		Store string `json:"store"`
	}
	line    string
	rest    chan string // what came on standard output after the ready line
	stderr  *estest.Log
	cancel  context.CancelFunc
	signals chan os.Signal
	exit    chan int
}

// startUp runs up until it is ready. It listens on a free port unless the arguments say otherwise.
func startUp(args ...string) (*upped, error) {
	u := &upped{stderr: &estest.Log{}, signals: make(chan os.Signal, 3), exit: make(chan int, 1), rest: make(chan string, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	out, in := io.Pipe()
	go func() {
		code := Main{
			Program: "catenary", Args: append([]string{"up", "--listen", "127.0.0.1:0"}, args...), Stdin: strings.NewReader(""), Stdout: in, Stderr: u.stderr,
			Env: func(string) string { return "" }, Now: time.Now, Signals: u.signals,
		}.Run(ctx)
		_ = in.Close()
		u.exit <- code
	}()
	lines := bufio.NewReader(out)
	var err error
	if u.line, err = lines.ReadString('\n'); err != nil {
		cancel()
		return nil, fmt.Errorf("up ended with %d and no ready line:\n%s", <-u.exit, u.stderr.String())
	}
	go func() {
		rest, _ := io.ReadAll(lines)
		u.rest <- string(rest)
	}()
	return u, json.Unmarshal([]byte(u.line), &u.ready)
}

// stop interrupts it as ^C does, and gives its exit code.
func (u *upped) stop() int {
	u.cancel()
	return <-u.exit
}

// called is what one call of the tool gave.
type called struct {
	code     int
	out, err string
}

// caller calls the tool against one chain.
type caller struct {
	t   *testing.T
	url string
	env map[string]string
}

// on gives a caller for the shared chain.
func on(t *testing.T) caller { return caller{t: t, url: shared.ready.NATS} }

// with gives the caller another environment.
func (c caller) with(env map[string]string) caller {
	c.env = env
	return c
}

// call runs the tool whole.
func (c caller) call(args ...string) called { return c.feed("", args...) }

// feed runs the tool whole, with something on standard input.
func (c caller) feed(stdin string, args ...string) called {
	c.t.Helper()
	var out, talk bytes.Buffer
	ctx, cancel := context.WithTimeout(c.t.Context(), waitLimit)
	defer cancel()
	code := Main{
		Program: "catenary", Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &talk, Now: time.Now,
		Env: func(name string) string {
			switch v, ok := c.env[name]; {
			case ok:
				return v
			case name == "NATS_URL":
				return c.url
			case name == "TZ":
				return "UTC"
			default:
				return ""
			}
		},
	}.Run(ctx)
	return called{code: code, out: out.String(), err: talk.String()}
}

// must runs the tool and fails the test unless it exits with the code.
func (c caller) must(code int, args ...string) called {
	c.t.Helper()
	found := c.call(args...)
	if found.code != code {
		c.t.Fatalf("catenary %q: exit code %d, want %d\n%s%s", args, found.code, code, found.out, found.err)
	}
	return found
}

// ok runs the tool, which must succeed.
func (c caller) ok(args ...string) called {
	c.t.Helper()
	return c.must(exitOK, args...)
}

// read runs the tool with -o json and reads what it prints.
func read[T any](c caller, args ...string) T {
	c.t.Helper()
	at := len(args)
	if i := slices.Index(args, "--"); i >= 0 {
		at = i // after it nothing is a flag
	}
	found := c.ok(slices.Insert(slices.Clone(args), at, "-o", "json")...)
	var v T
	if err := json.Unmarshal([]byte(found.out), &v); err != nil {
		c.t.Fatalf("catenary %q printed %s: %v", args, found.out, err)
	}
	return v
}

// node and module make one known.
func (c caller) node(name string) {
	c.t.Helper()
	c.register("node", name)
}

func (c caller) module(name string) {
	c.t.Helper()
	c.register("module", name)
}

func (c caller) register(kind, name string) {
	c.t.Helper()
	body, err := json.Marshal(map[string]string{kind: name})
	if err != nil {
		c.t.Fatal(err)
	}
	c.ok("send", kind, "register", "--data", string(body))
}
