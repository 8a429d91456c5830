package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"catenary/embedded"
	"catenary/internal/diagnosis"
	"catenary/internal/health"
)

// noServer is an address at which nobody listens.
const noServer = "nats://127.0.0.1:1"

// TestDoctorWhenNothingRuns: that is found too, with what to do about it.
func TestDoctorWhenNothingRuns(t *testing.T) {
	t.Parallel()
	c := caller{t: t, url: noServer}
	found := c.must(exitFailed, "doctor", "--store", t.TempDir())
	for _, want := range []string{"fail  server", "fail  store", "next: start the server"} {
		if !strings.Contains(found.out, want) {
			t.Errorf("it does not say %q:\n%s", want, found.out)
		}
	}
	if found.err != "" {
		t.Errorf("besides it says %s", found.err)
	}
}

// TestDoctor on a chain of which nothing is wrong but that no engine walks.
func TestDoctor(t *testing.T) {
	t.Parallel()
	c := on(t)
	found := c.call("doctor", "--all")
	for _, want := range []string{"ok    server", "writer", "view chain-nodes", "warn  engine\n", "next: start one (engine"} {
		if !strings.Contains(found.out, want) {
			t.Errorf("it does not say %q:\n%s", want, found.out)
		}
	}
	d := diagnosis.Diagnosis{}
	// Other tests park and stop things for a while: what is wrong at the moment is not for this one to say.
	if body := c.call("doctor", "-o", "json", "--store", shared.ready.Store); body.code != exitWarned && body.code != exitFailed {
		t.Errorf("it ends with %d: %s", body.code, body.err)
	} else if err := json.Unmarshal([]byte(body.out), &d); err != nil || d.State == health.OK || d.Measures.Event == 0 || d.Measures.Behind == nil {
		t.Errorf("it says %s, %v", body.out, err)
	}
}

// TestDoctorOfWhoMayNotAsk: who has an agent's credentials is told so, and not that nobody is there.
func TestDoctorOfWhoMayNotAsk(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	var made embedded.Credentials
	if err := json.Unmarshal([]byte(caller{t: t}.ok("agent", "credentials", "n1", "--store", store).out), &made); err != nil {
		t.Fatal(err)
	}
	u := started(t, "--store", store, "--durability", "interval", "--no-engine", "--no-audit")
	c := caller{t: t, url: u.ready.NATS, env: map[string]string{"NATS_USER": made.User, "NATS_PASSWORD": made.Password}}
	if found := c.must(exitFailed, "doctor"); !strings.Contains(found.out, "does not permit") || strings.Contains(found.out, "no writer") {
		t.Errorf("doctor says\n%s", found.out)
	}
	if found := c.must(checkUnknown, "check"); !strings.Contains(found.out, "UNKNOWN") {
		t.Errorf("check says\n%s", found.out)
	}
}

// TestDoctorOfAStore looks at that of a server that has its configuration in a file, too.
func TestDoctorOfAStore(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	if err := os.Mkdir(filepath.Join(store, "jetstream"), 0o700); err != nil {
		t.Fatal(err)
	}
	if found := (caller{t: t, url: noServer}).must(exitFailed, "doctor", "--store", store); strings.Contains(found.out, "no store in") {
		t.Errorf("it says\n%s", found.out)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, call := range []struct {
		name string
		url  string
		args string
		code int
		says string
	}{
		{"nothing runs", noServer, "", checkCritical, "CATENARY CRITICAL - server: connect to " + noServer},
		{"a threshold is none", noServer, "--lag soon", checkUnknown, "CATENARY UNKNOWN - "},
		{"an argument", noServer, "all", checkUnknown, "CATENARY UNKNOWN - "},
		{"no such flag", noServer, "--oops", checkUnknown, "CATENARY UNKNOWN - "},
		{"a context that is none", "", "--context none-such", checkUnknown, "CATENARY UNKNOWN - "},
	} {
		found := caller{t: t, url: call.url}.call(append([]string{"check"}, strings.Fields(call.args)...)...)
		if found.code != call.code || !strings.HasPrefix(found.out, call.says) || found.err != "" {
			t.Errorf("%s: it ends with %d and says %s%s", call.name, found.code, found.out, found.err)
		}
	}
	found := on(t).call("check", "--off", "0,0", "--pending", "7,8")
	first, _, _ := strings.Cut(found.out, "\n")
	for _, want := range []string{"CATENARY ", " | behind=", " lag=", "s;10;60;0", "%;80;95;0"} {
		if !strings.Contains(first, want) {
			t.Errorf("it does not say %q: %s", want, first)
		}
	}
	if strings.Count(first, "|") != 1 || found.code < checkWarning || found.code > checkCritical {
		t.Errorf("it ends with %d: %s", found.code, found.out)
	}
	var held struct {
		Status  string
		Exit    int
		Figures []diagnosis.Figure
	}
	found = on(t).call("check", "-o", "json")
	if err := json.Unmarshal([]byte(found.out), &held); err != nil || held.Exit != found.code || len(held.Figures) == 0 {
		t.Errorf("it says %s, %v", found.out, err)
	}
}
