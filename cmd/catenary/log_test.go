package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/es"
	"catenary/es/estest"
)

func TestLog(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("log-node")
	c.module("log-module")
	answer := read[es.Answer](c, "assign", "log-node", "log-module", "--package", "p@1", "--on-behalf-of", "log person", "--reason", "a <reason>", "--effective", "2026-05-01T07:00:00Z")
	c.ok("unassign", "log-node", "log-module")

	items := read[[]audit.Item](c, "log", "--aggregate", "assignment", "--key", "log-node.log-module")
	if len(items) != 2 || items[0].Type != "assignment.ended.v1" || items[1].Sequence != answer.Sequence {
		t.Fatalf("log is %+v, want the end and then the beginning", items)
	}
	told := items[1]
	told.ID, told.Recorded = "", time.Time{}
	want := audit.Item{
		Sequence: answer.Sequence, Type: "assignment.assigned.v1", Aggregate: "assignment", Key: "log-node.log-module", Version: 1,
		Effective: time.Date(2026, 5, 1, 7, 0, 0, 0, time.UTC), Command: answer.Command, Actor: "operator", OnBehalfOf: "log person",
		Data: json.RawMessage(`{"node":"log-node","module":"log-module","package":{"name":"p","version":"1"},"reason":"a <reason>"}`),
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("event (-want +found):\n%s", diff)
	}
	// A person is found by name, and what somebody else did on their behalf is theirs.
	if found := read[[]audit.Item](c, "log", "--actor", "log person"); len(found) != 1 || found[0].Sequence != answer.Sequence {
		t.Errorf("the person's events are %+v, want the one on their behalf", found)
	}
	if found := read[[]audit.Item](c, "log", "--actor", "nobody at all"); len(found) != 0 {
		t.Errorf("nobody's events are %+v", found)
	}
	if found := read[[]audit.Item](c, "log", "--key", "log-node", "--since", "1h"); len(found) != 1 {
		t.Errorf("the node's events are %+v, want one", found)
	}
	if found := read[[]audit.Item](c, "log", "--key", "log-node", "--until", "2026-01-01"); len(found) != 0 {
		t.Errorf("events before the test are %+v", found)
	}
	for args, want := range map[string]string{
		"--aggregate assignments":              "no such events: the aggregates are actor, assignment, build,",
		"--aggregate lease":                    "no such events\n",
		"--key log-nobody":                     "no such events\n",
		"--key log-node --aggregate freeze":    "no such events\n",
		"--key log-node --aggregate a-typo":    "writer\n",
		"--aggregate writer --limit 1 -o name": "",
	} {
		if found := c.ok(append([]string{"log"}, strings.Fields(args)...)...); !strings.Contains(found.err, want) {
			t.Errorf("log %s says %q, want %q", args, found.err, want)
		}
	}
	page := c.ok("log", "--aggregate", "assignment", "--key", "log-node.log-module", "--limit", "1", "-o", "name")
	_, cursor, _ := strings.Cut(page.err, "--cursor ")
	next := c.ok("log", "--aggregate", "assignment", "--key", "log-node.log-module", "--limit", "1", "-o", "name", "--cursor", strings.TrimSpace(cursor))
	if strings.TrimSpace(next.out) != number(answer.Sequence) {
		t.Errorf("the page after %q is %q, want event %d", page.out, next.out, answer.Sequence)
	}
	table := c.ok("log", "--aggregate", "assignment", "--key", "log-node.log-module").out
	for _, word := range []string{"SEQUENCE", "log-node log-module", "operator", "log person", "2026-05-01 07:00:00"} {
		if !strings.Contains(table, word) {
			t.Errorf("the table does not show %q:\n%s", word, table)
		}
	}
}

// followed runs the live log in JSON, and gives each line as it comes.
func followed(t *testing.T, url string, args ...string) (next func() audit.Item, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	talk := &estest.Log{}
	go func() {
		code <- Main{
			Args: append([]string{"log", "--follow", "-o", "json"}, args...), Stdin: strings.NewReader(""), Stdout: in, Stderr: talk, Now: time.Now,
			Env: func(name string) string { return map[string]string{"NATS_URL": url}[name] },
		}.Run(ctx)
		_ = in.Close()
	}()
	items := make(chan audit.Item)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(items)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var item audit.Item
			if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
				t.Errorf("line %s: %v", lines.Text(), err)
			}
			select {
			case items <- item:
			case <-ctx.Done():
			}
		}
	}()
	next = func() audit.Item {
		t.Helper()
		select {
		case item, more := <-items:
			if more {
				return item
			}
		case <-time.After(waitLimit):
		}
		t.Fatalf("the log shows nothing more, and says %q", talk.String())
		return audit.Item{}
	}
	return next, func() int {
		cancel()
		found := <-code
		<-read
		return found
	}
}

// TestLogFollowsRefused: refused commands are shown among the events as they come, by every filter, each once and none left out, over a
// restart of the chain too.
func TestLogFollowsRefused(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	u := started(t, "--store", store, "--durability", "interval")
	c := caller{t: t, url: u.ready.NATS}
	c.node("f1")
	c.node("f2")
	next, stop := followed(t, u.ready.NATS, "--node", "f1")
	alone, stopAlone := followed(t, u.ready.NATS, "--refused", "--key", "f1.nothing")
	version := uint64(0)
	event := func() {
		t.Helper()
		if version++; version > 1 {
			c.ok("send", "node", "relabel", "--data", `{"node":"f1","labels":{"n":"`+number(version)+`"}}`)
		}
		if item := next(); item.Refused != nil || item.Key != "f1" || item.Version != version {
			t.Fatalf("it shows %+v, want version %d of f1", item, version)
		}
	}
	commands := map[string]bool{}
	refuse := func() {
		t.Helper()
		c.must(exitRefused, "assign", "f2", "nothing", "--package", "p@1")
		c.must(exitRefused, "assign", "f1", "nothing", "--package", "p@1")
		for _, shows := range []func() audit.Item{next, alone} {
			item := shows()
			if item.Refused == nil || item.Refused.Key != "f1.nothing" || item.Actor != "operator" {
				t.Fatalf("it shows %+v, want the command that was refused", item)
			}
			commands[item.Refused.Command] = true
		}
	}
	event()
	refuse()
	event()
	refuse()
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	started(t, "--store", store, "--durability", "interval", "--listen", strings.TrimPrefix(u.ready.NATS, "nats://"))
	refuse()
	event()
	event()
	refuse()
	if len(commands) != 4 {
		t.Errorf("%d commands were shown, want each of the 4 in both", len(commands))
	}
	for _, stop := range []func() int{stop, stopAlone} {
		if code := stop(); code != exitOK {
			t.Errorf("interrupted, it ends with %d", code)
		}
	}
}

// TestLogFollows reads the live log, one object a line, and ends as ^C ends it.
func TestLogFollows(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("follow-1")
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Main{
			Args: []string{"log", "--follow", "--aggregate", "node", "--key", "follow-1", "-o", "json"}, Stdin: strings.NewReader(""), Stdout: in, Stderr: io.Discard, Now: time.Now,
			Env: func(name string) string { return map[string]string{"NATS_URL": c.url}[name] },
		}.Run(ctx)
		_ = in.Close()
	}()
	lines := bufio.NewScanner(out)
	for version := range uint64(3) {
		if !lines.Scan() {
			t.Fatalf("the log ended at version %d: %v", version, lines.Err())
		}
		var item audit.Item
		if err := json.Unmarshal(lines.Bytes(), &item); err != nil || item.Version != version+1 {
			t.Fatalf("line %s (%v), want version %d", lines.Text(), err, version+1)
		}
		c.ok("send", "node", "relabel", "--data", `{"node":"follow-1","labels":{"n":"`+number(version+1)+`"}}`)
	}
	cancel()
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if found := <-code; found != exitOK {
		t.Errorf("interrupted, it ends with %d, want %d", found, exitOK)
	}
}
