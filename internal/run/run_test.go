package run

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/events"
	"catenary/internal/topology"
)

func TestTogether(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	untilEnd := func(ctx context.Context) error { <-ctx.Done(); return nil }
	type tasks = map[string]func(context.Context) error
	for _, c := range []struct {
		name  string
		tasks tasks
		says  string
	}{
		{"one fails, the others end", tasks{"a": untilEnd, "b": func(context.Context) error { return broken }}, "b: broken"},
		{"one ends by itself", tasks{"a": untilEnd, "b": func(context.Context) error { return nil }}, "b: has ended by itself"},
		{"the caller's own part", tasks{"a": untilEnd, "": func(context.Context) error { return broken }}, "broken"},
		{"what fails on the way out is no reason", tasks{
			"a": func(context.Context) error { return broken },
			"b": func(ctx context.Context) error { <-ctx.Done(); return errors.New("late") },
		}, "a: broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := Together(t.Context(), c.tasks); err == nil || err.Error() != c.says {
				t.Errorf("error %v, want %s", err, c.says)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := func(ctx context.Context) error { <-ctx.Done(); return errors.Wrap(ctx.Err(), "stopped") }
	if err := Together(ctx, tasks{"a": untilEnd, "b": stopped}); err != nil {
		t.Errorf("told to stop, it gave %v", err)
	}
}

// TestPartsAgainstAServer runs writer and projector as their binaries do, and sends a command through both.
func TestPartsAgainstAServer(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	env := func(name string) string { return map[string]string{"NATS_URL": bus.URL()}[name] }
	file := filepath.Join(t.TempDir(), "deep", AuditFile)
	ctx, cancel := context.WithCancel(t.Context())
	var said estest.Log
	codes := make(chan int, 2)
	start := func(name string, part func(ctx context.Context, nc *nats.Conn, s Settings, log *slog.Logger, ready func()) error) {
		ready := make(chan struct{})
		go func() {
			codes <- Program{Name: name, Part: func(ctx context.Context, nc *nats.Conn, s Settings, _ Monitor, log *slog.Logger) error {
				return part(ctx, nc, s, log, func() { close(ready) })
			}}.Main(ctx, []string{"--durability", "interval", "--event-store-bytes", "100000000", "--bucket-bytes", "10000000"}, env, &said)
		}()
		select {
		case <-ready:
		case <-time.After(waitLimit):
			t.Fatalf("%s is not ready:\n%s", name, said.String())
		}
	}
	start("writer", func(ctx context.Context, nc *nats.Conn, s Settings, log *slog.Logger, ready func()) error {
		return Writer(ctx, nc, WriterConfig{Streams: s.Streams(), Logger: log, Ready: ready})
	})
	start("projector", func(ctx context.Context, nc *nats.Conn, s Settings, log *slog.Logger, ready func()) error {
		return Projector(ctx, nc, ProjectorConfig{Streams: s.Streams(), AuditFile: file, Logger: log, Ready: ready})
	})

	nc := bus.Connect(t)
	answer, err := commands.NewClient(dispatch.NewClient(nc)).Send(t.Context(), commands.RegisterNode{Node: "n1"}, dispatch.Options{})
	if err != nil || answer.Status != es.StatusAccepted {
		t.Fatalf("answer %+v, error %v", answer, err)
	}
	queries := audit.NewClient(nc, nil)
	p, err := queries.Position(t.Context(), audit.PositionQuestion{Sequence: answer.Sequence, Wait: audit.Duration(audit.MaxWait)})
	if err != nil || !p.Reached || len(p.Views) != len(topology.ChainBuckets()) {
		t.Fatalf("positions %+v, error %v; want all views past event %d", p, err, answer.Sequence)
	}
	for _, v := range p.Views {
		if want := map[string]uint64{topology.BucketNodes: 1}[v.Bucket]; v.Revision != want {
			t.Errorf("%s is at revision %d, want %d", v.Bucket, v.Revision, want)
		}
	}
	testAuditStore(t, nc, queries)
	report, err := queries.Verify(t.Context(), nil)
	if err != nil || !report.OK() || report.Events <= answer.Sequence {
		t.Errorf("report %+v, error %v; want all well", report, err)
	}

	cancel()
	for range 2 {
		if code := <-codes; code != exitOK {
			t.Errorf("told to stop, a program ends with %d:\n%s", code, said.String())
		}
	}
}

// testAuditStore asks the audit store of what was just recorded, and by whom.
func testAuditStore(t *testing.T, nc *nats.Conn, queries *audit.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	client := commands.NewClient(dispatch.NewClient(nc))
	for _, command := range []es.Payload{
		commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "web"}},
		commands.Assign{Node: "n1", Module: "web", Reference: events.Reference{Artifact: "sha256:ab"}, Reason: "a try"},
	} {
		answer, err := client.Send(ctx, command, dispatch.Options{OnBehalfOf: "Ann Other"})
		if err != nil || answer.Status != es.StatusAccepted {
			t.Fatalf("answer %+v, error %v", answer, err)
		}
	}
	tail, err := queries.Log(ctx, audit.LogQuestion{Limit: 1, Node: "n1", Text: "a try"})
	if err != nil || len(tail.Items) != 1 {
		t.Fatalf("log gave %+v, error %v; want the assignment", tail, err)
	}
	p, err := queries.Position(ctx, audit.PositionQuestion{Sequence: tail.Items[0].Sequence, Audit: true, Wait: audit.Duration(audit.MaxWait)})
	if err != nil || !p.Reached || p.Audit == nil || p.Audit.Event < tail.Items[0].Sequence {
		t.Errorf("positions %+v, error %v; want the audit store past event %d", p, err, tail.Items[0].Sequence)
	}
	for {
		blame, err := queries.Blame(ctx, audit.BlameQuestion{Node: "n1", Module: "web"})
		if err != nil || !blame.Stands || blame.Change.Reason != "a try" || blame.Change.OnBehalfOf == nil {
			t.Fatalf("blame gave %+v, error %v", blame, err)
		}
		if blame.Change.OnBehalfOf.Name == "Ann Other" {
			return
		}
		// Names come beside the events, a little later.
		if strings.Contains(blame.Change.OnBehalfOf.ID, "Ann") {
			t.Fatalf("the id is %q: it tells of the name", blame.Change.OnBehalfOf.ID)
		}
	}
}

// TestPartEndsWithItsConnection: a part whose connection is closed for good says so, and its program starts it again.
func TestPartEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	env := func(name string) string { return map[string]string{"NATS_URL": bus.URL()}[name] }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	starts := 0
	var said estest.Log
	code := Program{Name: "writer", Part: func(ctx context.Context, nc *nats.Conn, s Settings, _ Monitor, log *slog.Logger) error {
		starts++
		err := Writer(ctx, nc, WriterConfig{Streams: s.Streams(), Logger: log, Ready: func() {
			if starts == 1 {
				go nc.Close()
			} else {
				cancel()
			}
		}})
		if starts == 1 && !errors.Is(err, ErrConnectionClosed) {
			t.Errorf("error %v, want ErrConnectionClosed", err)
		}
		return err
	}}.Main(ctx, []string{"--event-store-bytes", "100000000", "--bucket-bytes", "10000000"}, env, &said)
	if code != exitOK || starts != 2 {
		t.Errorf("it ended with %d after %d starts, want 0 after 2:\n%s", code, starts, said.String())
	}
}

// A part that waits for a server that does not answer is told that none will, soon after it is to stop.
func TestStopDoesNotWaitForTheBus(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	env := func(name string) string { return map[string]string{"NATS_URL": bus.URL()}[name] }
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	var said estest.Log
	var waited error
	code := Program{Name: "part", Part: func(ctx context.Context, nc *nats.Conn, _ Settings, _ Monitor, _ *slog.Logger) error {
		if _, err := nc.SubscribeSync("mute"); err != nil {
			return err
		}
		cancel()
		patience, enough := context.WithTimeout(context.WithoutCancel(ctx), waitLimit)
		defer enough()
		_, waited = nc.RequestWithContext(patience, "mute", nil)
		return nil
	}}.Main(ctx, nil, env, &said)
	if code != exitOK || !errors.Is(waited, nats.ErrConnectionClosed) {
		t.Errorf("it ended with %d, and the wait with %v:\n%s", code, waited, said.String())
	}
}

func TestProgramFailures(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	none := func(context.Context, *nats.Conn, Settings, Monitor, *slog.Logger) error { return nil }
	for _, c := range []struct {
		name string
		args []string
		part func(context.Context, *nats.Conn, Settings, Monitor, *slog.Logger) error
		code int
		says string
	}{
		{"settings", []string{"--replicas", "2"}, none, exitUsage, "replicas"},
		{"no bus", []string{"--server", "nats://127.0.0.1:1"}, none, exitFailed, "127.0.0.1:1"},
		{"an unknown context", []string{"--context", "no-such-context"}, none, exitUsage, "no-such-context"},
		{"help", []string{"--help"}, none, exitOK, "Settings"},
		{"no event stream", []string{"--server", bus.URL(), "--bucket-bytes", "1000000"}, func(ctx context.Context, nc *nats.Conn, s Settings, _ Monitor, log *slog.Logger) error {
			return Projector(ctx, nc, ProjectorConfig{Streams: s.Streams(), Logger: log})
		}, exitFailed, topology.EventStream},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var said estest.Log
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			code := Program{Name: "part", Part: c.part}.Main(ctx, c.args, func(string) string { return "" }, &said)
			if code != c.code || !strings.Contains(said.String(), c.says) {
				t.Errorf("it ended with %d and said\n%swant %d and a word on %q", code, said.String(), c.code, c.says)
			}
		})
	}
}
