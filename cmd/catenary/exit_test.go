package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// TestExitCodes checks each code with the words that tell a person what to do.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("exit-node")
	c.module("exit-module")
	c.ok("assign", "exit-node", "exit-module", "--package", "p@1", "--id", "b5d8c1a0-0000-8000-8000-000000000001")
	for _, call := range []struct {
		args string
		code int
		says string
	}{
		{"get nodes exit-node", exitOK, ""},
		{"assign exit-node exit-module --package p@1", exitOK, ""},
		{"assign exit-node exit-module --package p@1 --id b5d8c1a0-0000-8000-8000-000000000001", exitOK, ""},
		{"assign exit-node exit-module --package p@1 --wait 1s", exitOK, ""},
		{"assign exit-node exit-module --wait 0 --package p@1", exitOK, ""},
		{"", exitOK, ""},
		{"--help", exitOK, ""},
		{"help exit-codes", exitOK, ""},
		{"version -o name", exitOK, ""},

		{"get", exitUsage, "assignments"},
		{"get assignmen", exitUsage, "did you mean assignment"},
		{"record buld", exitUsage, "did you mean build"},
		{"gte nodes", exitUsage, "did you mean get"},
		{"get nodes --oops", exitUsage, "--oops"},
		{"get nodes -o xml", exitUsage, "table, json, yaml, name"},
		{"get node", exitUsage, "NODE"},
		{"get assignment exit-node", exitUsage, "NODE MODULE"},
		{"get assignments exit..node", exitUsage, "list of assignments"},
		{"get assignment -n -m", exitUsage, "write -- before it"},
		{"assign exit-node", exitUsage, "takes NODE MODULE, and 1 given"},
		{"send node", exitUsage, "takes AGGREGATE VERB, and 1 given"},
		{"import deliveries", exitUsage, "takes FILE, and 0 given"},
		{"get freezes --node n1", exitUsage, "do not belong to a node"},
		{"get nodes exit-node --node exit-node", exitUsage, "one or the other"},
		{"get nodes --limit -1", exitUsage, "limit"},
		{"get nodes --limit 0", exitUsage, "from 1"},
		{"log --limit 012x", exitUsage, "decimal"},
		{"import deliveries - --in-flight 0", exitUsage, "from 1 to 8192"},
		{"import deliveries - --in-flight 999999999", exitUsage, "from 1 to 8192"},
		{"import deliveries - --confirm-ended all", exitUsage, "decimal"},
		{"assign exit-node exit-module --package p@1 --expect-version 1e5", exitUsage, "decimal"},
		{"assign exit-node exit-module --package p@1 --expect-version 0x1", exitUsage, "decimal"},
		{"get assignments --cursor a..b", exitUsage, "cursor"},
		{"get node exit-node --as-of someday", exitUsage, "RFC 3339"},
		{"assign exit-node exit-module", exitUsage, "--package"},
		{"assign exit-node exit-module --package p", exitUsage, "NAME@VERSION"},
		{"assign exit-node exit-module --package p@1 --artifact sha256:1", exitUsage, "one of them"},
		{"assign exit-node exit-module --package p@1 --backfill", exitUsage, "--effective"},
		{"assign exit-node exit-module --package p@1 --wait=maybe", exitUsage, "true, false"},
		{"assign exit-node exit-module --package p@1 --wait -1s", exitUsage, "true, false"},
		{"assign exit-node exit-module --package p@1 --expect-version one", exitUsage, "expect-version"},
		{"assign exit-node exit-module --package p@1 --id 12", exitUsage, "id"},
		{"get nodes --timeout 0", exitUsage, "above zero"},
		{"get nodes --timeout -1s", exitUsage, "above zero"},
		{"get nodes --timeout 30", exitUsage, "such as 30s"},
		{"send node register", exitUsage, "managed-by"},
		{"send node paint", exitUsage, "register"},
		{"send noode register", exitUsage, "assignment"},
		{"send node.x register --data {}", exitUsage, "aggregate"},
		{"send node paint --data {}", exitUsage, "register"},
		{"send node register --data {", exitUsage, "malformed"},
		{"send node register --data null", exitUsage, ""},
		{`send node register --data {"noode":"x"}`, exitUsage, "noode"},
		{"log --limit -1", exitUsage, "--limit"},
		{"log --follow --until 2026-05-01", exitUsage, "until"},
		{"up --durability sometimes", exitUsage, "fsync"},
		{"up --listen nowhere", exitUsage, "HOST:PORT"},
		{"up --store=", exitUsage, "--store"},
		{"up --listen=", exitUsage, "--listen"},
		{"verify --store=", exitUsage, "--store"},
		{"--context no-such-context get nodes", exitUsage, "no-such-context"},

		{"get node exit-nobody", exitNotFound, "get nodes lists"},
		{"get nodes exit-node exit-nobody", exitNotFound, "exit-nobody"},
		{"history node exit-nobody", exitNotFound, "exit-nobody"},
		{"get assignment exit-node exit-module --as-of 2000-01-01", exitNotFound, "history begins"},

		{`send module forget --data {"module":"exit-module"}`, exitRefused, "exit-node"},
		{"assign exit-node exit-nothing --package p@1", exitRefused, "module register"},
		{"assign exit-node exit-module --package p@2 --id b5d8c1a0-0000-8000-8000-000000000001", exitRefused, "another body"},
		{"assign exit-node exit-module --package p@2 --effective 2000-01-01T00:00:00Z", exitRefused, "backfill"},

		{"assign exit-node exit-module --package p@2 --expect-version 77", exitConflict, "version 1, not 77"},
		{"assign exit-node exit-module --package p@2 --expect-version 012", exitConflict, "version 1, not 12"},

		{"--server nats://127.0.0.1:1 get nodes", exitUnreachable, "127.0.0.1:1"},
		{"--server nats://127.0.0.1:1 assign n m --package p@1", exitUnreachable, "catenary up"},
	} {
		t.Run(call.args, func(t *testing.T) {
			t.Parallel()
			c := on(t)
			found := c.must(call.code, strings.Fields(call.args)...)
			if !strings.Contains(found.err, call.says) {
				t.Errorf("it says\n%swant a word on %q", found.err, call.says)
			}
			if (found.code == exitOK) != (found.err == "") {
				t.Errorf("exit code %d, and it says %q", found.code, found.err)
			}
		})
	}
}

// TestStatusesHaveExitCodes: a status that is added gets a code by decision, not by default.
func TestStatusesHaveExitCodes(t *testing.T) {
	t.Parallel()
	for status, want := range map[es.Status]int{
		es.StatusAccepted: 0, es.StatusUnchanged: 0, es.StatusInvalid: 2, es.StatusDenied: 3, es.StatusRejected: 5, es.StatusExpired: 5, es.StatusFenced: 5,
		es.StatusConflict: 6, es.StatusUnknown: 9, es.StatusBusy: 1,
	} {
		if found := exitCode(errors.Wrap(&notDone{answer: es.Answer{Status: status}}, "send")); status != es.StatusAccepted && status != es.StatusUnchanged && found != want {
			t.Errorf("status %s ends with %d, want %d", status, found, want)
		}
		if found := statusCode(status); found != want {
			t.Errorf("status %s has the code %d, want %d", status, found, want)
		}
	}
	if found := exitCode(errors.Wrap(context.DeadlineExceeded, "read")); found != exitTimedOut {
		t.Errorf("a deadline ends with %d, want %d", found, exitTimedOut)
	}
	for code := range map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 11: true} {
		if !strings.Contains(exitCodesHelp, fmt.Sprintf("\n%4d  ", code)) {
			t.Errorf("help exit-codes says nothing of %d", code)
		}
	}
}

// TestAnswerIsPrinted: the answer is data, so a script has it whatever it says.
func TestAnswerIsPrinted(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("answer-node")
	found := c.must(exitRefused, "assign", "answer-node", "answer-module", "--package", "p@1")
	if !strings.HasPrefix(found.out, `{"status":"rejected",`) || strings.Count(found.out, "\n") != 1 {
		t.Errorf("standard output is %q, want one answer object", found.out)
	}
	if found := c.must(exitRefused, "assign", "answer-node", "answer-module", "--package", "p@1", "-o", "table"); !strings.Contains(found.out, "rejected") {
		t.Errorf("the table is %q, want the status in it", found.out)
	}
}

// TestBodyLimits is case D12 over the command line: refused with limit and size, and the chain goes on.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	c := on(t)
	for _, size := range []int{1 << 20, 1<<20 + 1, 5 << 20} {
		body := `{"node":"too-large","labels":{"x":"` + strings.Repeat("x", size) + `"}}`
		found := c.feed(body, "send", "node", "register", "--data", "-")
		if found.code != exitUsage || !strings.Contains(found.err, fmt.Sprint(len(body))) || !strings.Contains(found.err, "limit") {
			t.Errorf("a body of %d bytes: exit code %d and %.300q, want %d with the size and the limit", len(body), found.code, found.err, exitUsage)
		}
	}
	c.must(exitNotFound, "get", "node", "too-large")
}
