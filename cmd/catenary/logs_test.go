package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"catenary/agent/logs"
	"catenary/internal/natsconn"
)

// say hands in parts of logs as an agent does.
func say(t *testing.T, parts ...logs.Part) {
	t.Helper()
	conn, err := natsconn.Connect(t.Context(), natsconn.Config{Server: shared.ready.NATS})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := logs.NewClient(conn.Conn, nil)
	for _, p := range parts {
		if err := client.Put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	c := on(t)
	web := logs.Span{Node: "logs n1", Module: "web", Rollout: "r1", Source: 7, Attempt: 1, Deed: "apply"}
	db := logs.Span{Node: "logs n1", Module: "db", Source: 8, Attempt: 2, Deed: "remove"}
	say(t,
		logs.Part{Span: web, ID: "logs-a", Number: 1, Text: "one\r\ntwo \x1b[31mred\nthr"},
		logs.Part{Span: web, ID: "logs-a", Number: 2, Text: "ee\n"},
		logs.Part{Span: web, ID: "logs-a", Number: 3, Cut: 1234, Last: true, Text: "the end\n"},
		logs.Part{Span: db, ID: "logs-b", Number: 1, Last: true, Text: "gone"},
	)
	body := func(text string) string {
		var kept []string
		for l := range strings.Lines(text) {
			if at := strings.Index(l, "Z: "); strings.HasPrefix(l, "== ") && at > 0 {
				l = "== " + l[at+3:]
			} else if _, title, ok := strings.Cut(l, " +0000: "); strings.HasPrefix(l, "== ") && ok {
				l = "== " + title
			}
			kept = append(kept, l)
		}
		return strings.Join(kept, "")
	}
	webText := `== apply web on logs n1, told by event 7, attempt 1, of rollout r1
one
two \u001B[31mred
three
[1234 bytes are cut: of one try 33554432 bytes are kept, of what comes faster than it is stored 8388608, and its end]
the end
`
	dbText := "== remove db on logs n1, told by event 8, attempt 2\ngone\n"
	for args, want := range map[string]string{
		"":                               webText + dbText,
		"db":                             dbText,
		"--rollout r1":                   webText,
		"web --rollout r2":               "",
		"--step r1.canary.logs=20n1.web": webText,
	} {
		if found := body(c.ok(append([]string{"logs", "logs n1"}, strings.Fields(args)...)...).out); found != want {
			t.Errorf("logs %s shows\n%swant\n%s", args, found, want)
		}
	}
	if lines := strings.Count(c.ok("logs", "logs n1", "-o", "json").out, "\n"); lines != 4 {
		t.Errorf("as JSON there are %d lines, want one for each part", lines)
	}
}

// TestLogsFollow sees what comes, until it is interrupted.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	span := logs.Span{Node: "logs-followed", Module: "web", Source: 7, Attempt: 1, Deed: "apply"}
	say(t, logs.Part{Span: span, ID: "logs-c", Number: 1, Text: "before\n"})
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := Main{
			Program: "catenary", Args: []string{"logs", "logs-followed", "--follow", "--server", shared.ready.NATS}, Stdin: strings.NewReader(""),
			Stdout: in, Stderr: io.Discard, Env: func(string) string { return "" }, Now: time.Now,
		}.Run(ctx)
		_ = in.Close()
		ended <- code
	}()
	lines := bufio.NewReader(out)
	for i, want := range []string{"== ", "before\n", "after\n"} {
		if i == 2 {
			say(t, logs.Part{Span: span, ID: "logs-c", Number: 2, Last: true, Text: "after\n"})
		}
		if found, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(found, want) {
			t.Fatalf("line %d is %q, %v, want %q", i, found, err, want)
		}
	}
	interrupt()
	if code := <-ended; code != exitOK {
		t.Errorf("it ends with %d", code)
	}
}
