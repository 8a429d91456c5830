package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es/estest"
	"catenary/events"
)

// watched is a call of the tool that goes on.
type watched struct {
	out    *estest.Log
	cancel context.CancelFunc
	exit   chan int
}

// watch runs `catenary watch` until it is interrupted.
func (c caller) watch(args ...string) watched {
	c.t.Helper()
	return c.run(append([]string{"watch", "--every", "100ms"}, args...)...)
}

// run runs the tool beside the test.
func (c caller) run(args ...string) watched {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	w := watched{out: &estest.Log{}, cancel: cancel, exit: make(chan int, 1)}
	go func() {
		w.exit <- Main{
			Program: "catenary", Args: args, Stdin: strings.NewReader(""), Stdout: w.out, Stderr: w.out, Now: time.Now,
			Env: func(name string) string { return map[string]string{"NATS_URL": c.url, "TZ": "UTC"}[name] },
		}.Run(ctx)
	}()
	return w
}

// stop interrupts it as ^C does, and gives its exit code.
func (w watched) stop() int {
	w.cancel()
	return <-w.exit
}

func (w watched) shows(t *testing.T, what string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("it has shown\n%s", w.out.String())
		}
	}()
	eventually(t, what, func() bool { return strings.Contains(w.out.String(), what) })
}

// TestWatchOverARestart watches from a pipe while the server goes away and comes back.
func TestWatchOverARestart(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	u, err := startUp("--store", store, "--durability", "interval", "--no-audit", "--no-engine")
	if err != nil {
		t.Fatal(err)
	}
	c := caller{t: t, url: u.ready.NATS}
	c.fleet("seen", "seena")
	w := c.watch()
	defer w.cancel()
	w.shows(t, "1 node, 1 assignment: 1 not reported")
	c.ok("send", "assignment", "observe", "--data", `{"node":"seena","module":"seen","package":{"name":"seen","version":"1"},"outcome":"unhealthy"}`)
	w.shows(t, "seena seen: unhealthy, told seen@1\n")
	if code := u.stop(); code != exitOK {
		t.Errorf("up ended with %d:\n%s", code, u.stderr.String())
	}
	w.shows(t, "perhaps out of date: ") // since nothing can be read, or since nobody says how far the views are just before
	again := started(t, "--store", store, "--durability", "interval", "--no-audit", "--no-engine", "--listen", strings.TrimPrefix(u.ready.NATS, "nats://"))
	w.shows(t, "up to date again")
	c.ok("send", "assignment", "observe", "--data", `{"node":"seena","module":"seen","package":{"name":"seen","version":"1"},"outcome":"healthy"}`)
	w.shows(t, "seena seen: unhealthy, told seen@1: no more")
	w.shows(t, "1 node, 1 assignment: 1 as told")
	if code := w.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d:\n%s", code, w.out.String())
	}
	if code := again.stop(); code != exitOK {
		t.Errorf("up ended with %d:\n%s", code, again.stderr.String())
	}
}

// TestWaitOverARestart waits for a rollout while the server goes away and comes back.
func TestWaitOverARestart(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	u, err := startUp("--store", store, "--durability", "interval", "--no-audit", "--no-engine")
	if err != nil {
		t.Fatal(err)
	}
	c := caller{t: t, url: u.ready.NATS}
	c.fleet("awaited", "awaiteda")
	c.ok("record", "publication", "awaited@2", "--module", "awaited")
	c.ok("rollout", "plan", "--set", "awaited=awaited@2", "--strategy", file(t, "all.yaml", "tiers:\n  - name: all\n"), "--as", "r")
	c.ok("rollout", "start", "r")
	w := c.run("rollout", "watch", "r")
	defer w.cancel()
	w.shows(t, "rollout r: running")
	if code := u.stop(); code != exitOK {
		t.Errorf("up ended with %d:\n%s", code, u.stderr.String())
	}
	w.shows(t, "nothing can be read now, waiting on: ")
	again := started(t, "--store", store, "--durability", "interval", "--no-audit", "--no-engine", "--listen", strings.TrimPrefix(u.ready.NATS, "nats://"))
	w.shows(t, "it can be read again")
	c.ok("send", "rollout", "begin-step", "--data", `{"id":"r","node":"awaiteda","module":"awaited"}`)
	c.ok("rollout", "settle", "r", "awaiteda", "awaited", "--outcome", "done", "--reason", "looked at it")
	if code := <-w.exit; code != exitOK {
		t.Errorf("it ends with %d:\n%s", code, w.out.String())
	}
	if code := again.stop(); code != exitOK {
		t.Errorf("up ended with %d:\n%s", code, again.stderr.String())
	}
}

// TestWatchJSON reads what changes as objects, steps included.
func TestWatchJSON(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.fleet("objects", "objectsa")
	c.ok("rollout", "plan", "--set", "objects=objects@2", "--strategy", file(t, "all.yaml", "tiers:\n  - name: all\n"), "--as", "objects")
	w := c.watch("-o", "json")
	defer w.cancel()
	w.shows(t, `"id":"objects","state":"planned"`)
	c.ok("rollout", "start", "objects")
	c.ok("send", "rollout", "begin-step", "--data", `{"id":"objects","node":"objectsa","module":"objects"}`)
	w.shows(t, `"steps":[{"rollout":"objects","tier":"all","node":"objectsa"`)
	c.ok("rollout", "abort", "objects")
	if code := w.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d:\n%s", code, w.out.String())
	}
	for l := range strings.Lines(w.out.String()) {
		var s sight
		if err := json.Unmarshal([]byte(l), &s); err != nil || s.At.IsZero() || s.Nodes.All == 0 {
			t.Errorf("%s: %v, %+v", l, err, s)
		}
	}
	c.must(exitUsage, "watch", "--every", "1ms")
	c.must(exitUsage, "watch", "--every", "soon")
	c.must(exitUsage, "watch", "-o", "yaml")
	c.must(exitUsage, "watch", "something")
	c.url = "nats://127.0.0.1:1"
	c.must(exitUnreachable, "watch")
}

// aSight has one of everything.
func aSight() sight {
	s := sight{
		At: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Server: "nats://bus", Event: 77, NoEngine: "none walks",
		Assignments: map[string]int{placeAsTold: 1200, placeDrifted: 1}, TroubleCount: 1,
		Trouble: []trouble{{Node: "n1", Module: "web", State: placeDrifted, Told: "web@1", Runs: "web@1", Says: "the file was edited\x1b[31m"}},
	}
	s.Nodes.All, s.Nodes.External = 1000, 4
	s.Rollouts = []rolloutSight{sightOf(chain.Rollout{
		ID: "r1", State: chain.RolloutRunning, Reason: "try it", Builds: []events.Target{{Module: "web", Version: events.Version{Reference: demoPackage("web", "1")}}},
		Tiers: []chain.Tier{
			{Name: "first", Entered: time.Unix(1, 0), Counts: chain.Counts{Steps: 4, Done: 1, Failed: 1, Pending: 1}},
			{Name: "all of the rest", Counts: chain.Counts{Steps: 96}},
		},
	}), sightOf(chain.Rollout{ID: "r0", State: chain.RolloutFailed, Why: "too many failed", Tiers: []chain.Tier{{Name: "t"}}})}
	s.Rollouts[0].Waits = waitsOf([]standstill{
		{Tier: "first", Node: "n2", Module: "web", Reason: events.HoldPending, WaitsFor: "a report", Until: time.Date(2026, 5, 1, 12, 10, 0, 0, time.UTC)},
		{Reason: events.HoldPaused, WaitsFor: "somebody to resume it"}, {Tier: "first", Node: "n3", Module: "web", Reason: events.HoldPending},
	})
	return s
}

func TestWatchFrame(t *testing.T) {
	t.Parallel()
	const want = `catenary at nats://bus  2026-05-01 12:00:00 +0000
up to date, event 77
1,000 nodes (4 managed by others), 1,201 assignments: 1,200 as told, 1 drifted

rollout r1: running, carries web@1: try it
  first            [#####!!!!!>>>>>.....]  4 steps, 1 pending, 1 done, 1 failed
  all of the rest  [....................]  96 steps
  2 pending: n2 web waits for a report, until 2026-05-01 12:10:00 +0000
  paused waits for somebody to resume it
rollout r0: failed: too many failed
no engine says what rollouts wait for: none walks

1 place is not as told
  n1 web: drifted, told web@1: the file was edited\u001B[31m
`
	var found strings.Builder
	lines := frame(aSight(), time.UTC)
	for _, l := range lines {
		found.WriteString(l.text + "\n")
	}
	if diff := cmp.Diff(want, found.String()); diff != "" {
		t.Errorf("the picture (-want +found):\n%s", diff)
	}
	small := painted(lines, 20, 5, false)
	if rows := strings.Split(small, "\r\n"); len(rows) != 5 || !strings.Contains(rows[4], "10 lines more: make~") || !strings.Contains(rows[0], "catenary at nats://~") {
		t.Errorf("in a small window it is %q", small)
	}
	if strings.Contains(small, "\x1b[3") || !strings.Contains(painted(lines, 80, 24, true), "\x1b[32mup to date") {
		t.Error("colours are not as asked for")
	}
	if found := painted(lines, 80, 1, false); strings.Contains(found, "\n") {
		t.Errorf("in a window of one line it is %q", found)
	}
	empty := frame(sight{Behind: "chain-nodes has stopped"}, time.UTC)
	if empty[1].text != "perhaps out of date: chain-nodes has stopped" || !strings.Contains(empty[4].text, "no rollouts") {
		t.Errorf("of an empty chain it is %+v", empty)
	}
}

func TestWatchLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := watchLines{out: &out, zone: time.UTC, shown: map[string]string{}}
	show := func(s sight) string {
		t.Helper()
		out.Reset()
		if err := w.show(s); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(out.String(), "2026-05-01 12:00:00 +0000  ", "")
	}
	s := aSight()
	const all = `1,000 nodes (4 managed by others), 1,201 assignments: 1,200 as told, 1 drifted
rollout r1: running, carries web@1: try it
rollout r1: tier first: 4 steps, 1 pending, 1 done, 1 failed
rollout r1 waits: paused waits for somebody to resume it
rollout r0: failed: too many failed
n1 web: drifted, told web@1: the file was edited\u001B[31m
`
	if diff := cmp.Diff(all, show(s)); diff != "" {
		t.Errorf("at first (-want +found):\n%s", diff)
	}
	if found := show(s); found != "" {
		t.Errorf("unchanged it says %q", found)
	}
	out1 := s.out(s.At.Add(time.Minute), errors.New("connection refused"))
	if found, want := show(out1), "perhaps out of date: nothing can be read since 12:00:00Z: connection refused\n"; found != want {
		t.Errorf("out of reach it says %q, want %q", found, want)
	}
	if found := show(out1.out(s.At, errors.New("time-out"))); found != "" {
		t.Errorf("still out of reach it says %q", found)
	}
	s.Trouble, s.TroubleCount = nil, 0
	if found, want := show(s), "up to date again\nn1 web: drifted, told web@1: the file was edited\\u001B[31m: no more\n"; found != want {
		t.Errorf("back again it says %q, want %q", found, want)
	}
}
