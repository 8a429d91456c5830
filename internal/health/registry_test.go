package health_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/internal/health"
)

// clock is set by hand.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) read() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// TestSince says since when a check is in its state, however often that is said or looked at again.
func TestSince(t *testing.T) {
	t.Parallel()
	at := newClock()
	began := at.now
	r := health.New(health.Process{Program: "writer"}, at.read)
	said := r.Signal("said", health.Finding{State: health.OK})
	state := health.OK
	forget := r.Look(func(context.Context) []health.Check {
		return []health.Check{{Name: "looked", Finding: health.Finding{State: state}}}
	})
	since := func(name string) time.Duration {
		c, ok := r.Report(t.Context()).Check(name)
		if !ok {
			t.Fatalf("there is no check %s", name)
		}
		return c.Since.Sub(began)
	}
	if since("said") != 0 || since("looked") != 0 {
		t.Errorf("at the start: %v and %v", since("said"), since("looked"))
	}
	at.pass(time.Minute)
	said.Fail(health.Away, "gone", "look for it")
	state = health.Fail
	if since("said") != time.Minute || since("looked") != time.Minute {
		t.Errorf("after a change: %v and %v", since("said"), since("looked"))
	}
	at.pass(time.Minute)
	said.Fail(health.Away, "still gone", "look for it")
	if since("said") != time.Minute || since("looked") != time.Minute {
		t.Errorf("said again: %v and %v", since("said"), since("looked"))
	}
	if s := r.Report(t.Context()).State; s != health.Fail {
		t.Errorf("all in all it is %s", s)
	}
	said.Drop()
	forget()
	if checks := r.Report(t.Context()).Checks; len(checks) != 0 {
		t.Errorf("checks that are gone: %v", checks)
	}
}

// TestAliveDependsOnNothing: what only needs the bus back is no reason to start a process again, what stands still is.
func TestAliveDependsOnNothing(t *testing.T) {
	t.Parallel()
	at := newClock()
	r := health.New(health.Process{Program: "writer"}, at.read)
	r.Signal("bus", health.Finding{State: health.Fail, Reason: "away"})
	defer r.Look(func(context.Context) []health.Check {
		t.Error("it was looked at")
		return nil
	})()
	pulse := r.Pulse("loop", time.Minute)
	if s := r.Alive().State; s != health.OK {
		t.Errorf("with the bus away: %s", s)
	}
	at.pass(2 * time.Minute)
	stuck := r.Alive()
	if stuck.State != health.Fail || stuck.Checks[0].Code != health.Stuck || !stuck.Checks[0].Since.Equal(at.now.Add(-2*time.Minute)) {
		t.Errorf("a loop that stands still: %+v", stuck)
	}
	pulse.Beat()
	if s := r.Alive().State; s != health.OK {
		t.Errorf("a loop that goes on: %s", s)
	}
	pulse.Stop()
	if checks := r.Alive().Checks; len(checks) != 0 {
		t.Errorf("a loop that has ended: %v", checks)
	}
}

// TestHandle: a status that probes understand, and a line for each check.
func TestHandle(t *testing.T) {
	t.Parallel()
	r := health.New(health.Process{Program: "projector", Version: "1.2.3"}, newClock().read)
	view := r.Signal("view chain-nodes", health.Finding{State: health.OK})
	r.Signal("audit store", health.Finding{State: health.Warn, Code: health.Paused, Reason: "the disk is moved", Next: "resume it"})
	mux := http.NewServeMux()
	r.Handle(mux)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	code, body := get(health.PathReady)
	var report health.Report
	if err := json.Unmarshal([]byte(body), &report); err != nil || code != http.StatusOK || report.State != health.Warn || report.Program != "projector" {
		t.Errorf("a warning: %d, %v\n%s", code, err, body)
	}
	var lines []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, `{"name"`) {
			name, _, _ := strings.Cut(line, ",")
			lines = append(lines, name)
		}
	}
	if diff := cmp.Diff([]string{`{"name":"audit store"`, `{"name":"view chain-nodes"`}, lines); diff != "" {
		t.Errorf("lines:\n%s", diff)
	}
	view.Fail(health.Stopped, "it can't fold", "skip it")
	if code, body := get(health.PathReady); code != http.StatusServiceUnavailable || !strings.Contains(body, `"code":"stopped"`) {
		t.Errorf("a failure: %d\n%s", code, body)
	}
	if code, body := get(health.PathAlive); code != http.StatusOK || !strings.HasSuffix(body, "\"checks\":[\n]}\n") {
		t.Errorf("whether it lives: %d\n%s", code, body)
	}
}

// TestNobodyListens: who keeps no registry may say everything to it.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	var r *health.Registry
	s := r.Signal("x", health.Finding{State: health.OK})
	s.Warn(health.Parked, "a", "b")
	s.Drop()
	p := r.Pulse("y", time.Second)
	p.Beat()
	p.Stop()
	r.Look(nil)()
	if report := r.Report(t.Context()); report.State != health.OK || len(report.Checks) != 0 {
		t.Errorf("nobody has said %+v", report)
	}
}
