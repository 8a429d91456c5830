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
