package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/es/estest"
)

// TestNobodyListens: a bus without a writer or a projector is there, and does nothing.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	c := caller{t: t, url: estest.Server(t, false).URL()}
	for args, says := range map[string]string{
		"assign n1 web --package web@1": "writer",
		"log":                           "projector",
		"verify":                        "projector",
		"get nodes":                     "chain-nodes",
	} {
		if found := c.must(exitUnreachable, strings.Fields(args)...); !strings.Contains(found.err, says) {
			t.Errorf("%s says %q, want a word on the %s", args, found.err, says)
		}
	}
}

// TestNoAnswer: a command that is not answered may have been recorded, so its id is told.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	silent(t, bus, func(*nats.Msg) []byte { return nil })
	c := caller{t: t, url: bus.URL()}
	begin := time.Now()
	found := c.must(exitTimedOut, "assign", "n1", "web", "--package", "web@1", "--timeout", "100ms")
	if !strings.Contains(found.err, "--id ") || found.out != "" {
		t.Errorf("it printed %q and says %q, want no answer, and how to learn what became of it", found.out, found.err)
	}
	if took := time.Since(begin); took > waitLimit/2 {
		t.Errorf("it waited %v", took)
	}
}

// TestRecordedButNotShown: without a projector what is recorded can't be read, which is no failure of the command.
func TestRecordedButNotShown(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	silent(t, bus, func(*nats.Msg) []byte { return []byte(`{"status":"accepted","sequence":7}`) })
	c := caller{t: t, url: bus.URL()}
	if found := c.ok("assign", "n1", "web", "--package", "web@1"); !strings.Contains(found.err, "recorded as event 7") {
		t.Errorf("it says %q, want that event 7 can't be read yet", found.err)
	}
	if found := c.ok("assign", "n1", "web", "--package", "web@1", "--wait=false"); found.err != "" {
		t.Errorf("without waiting it says %q", found.err)
	}
}

// silent listens for commands and answers what it is told to; nothing means no answer.
func silent(t *testing.T, bus *estest.Bus, answer func(*nats.Msg) []byte) {
	t.Helper()
	nc := bus.Connect(t)
	_, err := nc.Subscribe("catenary.cmd.>", func(m *nats.Msg) {
		if body := answer(m); body != nil {
			if err := m.Respond(body); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}
