package run

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/internal/health"
	"catenary/internal/topology"
)

// monitored is a monitor whose pages are served until the test ends.
func monitored(t *testing.T, program, traces string) (Monitor, Page) {
	t.Helper()
	m, page, closed, err := OpenMonitor(t.Context(), MonitorConfig{
		Program: program, HTTP: "0", Traces: traces, Env: func(string) string { return "" }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closed)
	return m, page
}

// get asks a page.
func (p Page) get(t *testing.T, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitLimit}
	answer, err := client.Get(p.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// is waits until a check of a process has a state.
func (m Monitor) is(t *testing.T, check string, state health.State, words string) {
	t.Helper()
	eventually(t, check+" to be "+string(state), func() bool {
		c, ok := m.Health.Report(t.Context()).Check(check)
		return ok && c.State == state && strings.Contains(c.Reason, words)
	})
}

// TestMonitor goes through what happens to the parts of a chain and looks at what they say: a start, a standby, a bus that goes and comes.
func TestMonitor(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	ctx, stop := context.WithCancel(t.Context())
	options := topology.Options{EventStoreBytes: 100_000_000, BucketBytes: 10_000_000}
	log := slog.New(slog.DiscardHandler)
	writing, writingPage := monitored(t, "writer", "")
	other, _ := monitored(t, "writer", "")
	projecting, projectingPage := monitored(t, "projector", "")
	walking, _ := monitored(t, "engine", "")
	var parts sync.WaitGroup
	part := func(run func() error) {
		parts.Go(func() {
			if err := run(); err != nil && ctx.Err() == nil {
				t.Errorf("a part has ended: %v", err)
			}
		})
	}
	ncs := [3]struct{ ready chan struct{} }{}
	for i := range ncs {
		ncs[i].ready = make(chan struct{})
	}
	first, second, third, fourth, asking := bus.Connect(t), bus.Connect(t), bus.Connect(t), bus.Connect(t), bus.Connect(t)
	part(func() error {
		return Writer(ctx, first, WriterConfig{Streams: options, Logger: log, Monitor: writing, Ready: func() { close(ncs[0].ready) }})
	})
	part(func() error { return writing.AnswerHealth(ctx, first, log) })
	<-ncs[0].ready
	part(func() error { return Writer(ctx, second, WriterConfig{Streams: options, Logger: log, Monitor: other}) })
	part(func() error {
		return Projector(ctx, third, ProjectorConfig{
			Streams: options, Logger: log, Monitor: projecting, AuditFile: filepath.Join(t.TempDir(), AuditFile), Ready: func() { close(ncs[1].ready) },
		})
	})
	part(func() error { return projecting.AnswerHealth(ctx, third, log) })
	<-ncs[1].ready
	part(func() error {
		return Engine(ctx, fourth, EngineConfig{Logger: log, Monitor: walking, Ready: func() { close(ncs[2].ready) }})
	})
	<-ncs[2].ready

	writing.is(t, health.CheckWriter, health.OK, "takes commands")
	other.is(t, health.CheckWriter, health.OK, "stands by")
	walking.is(t, health.CheckEngine, health.OK, "nothing to walk")
	for _, check := range []string{"audit store", "proofs", health.CheckProjector, health.CheckView + topology.BucketNodes} {
		projecting.is(t, check, health.OK, "")
	}
	if _, err := commands.NewClient(dispatch.NewClient(asking)).Send(t.Context(), commands.RegisterNode{Node: "n1"}, dispatch.Options{}); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[Page]string{
		writingPage: `catenary_commands_total{aggregate="node",status="accepted",verb="register"} 1`, projectingPage: `catenary_nodes{state="unsure"} 1`,
	} {
		eventually(t, want, func() bool {
			_, text := page.get(t, "/metrics")
			return strings.Contains(text, want)
		})
	}
	eventually(t, "the answers of both on the bus", func() bool {
		heard, err := health.Gather(t.Context(), asking)
		return err == nil && len(heard) == 2
	})
	if code, body := projectingPage.get(t, health.PathReady); code != http.StatusOK {
		t.Errorf("a projector that goes on is not ready: %s", body)
	}

	bus.Stop()
	writing.is(t, "writer bus", health.Fail, "away")
	projecting.is(t, "projector bus", health.Fail, "away")
	if code, body := writingPage.get(t, health.PathReady); code != http.StatusServiceUnavailable {
		t.Errorf("without a bus it is ready: %s", body)
	}
	if code, body := writingPage.get(t, health.PathAlive); code != http.StatusOK {
		t.Errorf("without a bus it is to be started again: %s", body)
	}
	bus.Start(t)
	writing.is(t, "writer bus", health.OK, "connected")
	eventually(t, "a projector that is ready again", func() bool {
		code, _ := projectingPage.get(t, health.PathReady)
		return code == http.StatusOK
	})
	stop()
	parts.Wait()
	if left := writing.Health.Report(t.Context()).Checks; len(left) != 0 {
		t.Errorf("a writer that has ended says %+v", left)
	}
}

// TestTraces follows one command from who sent it through its event to the view that shows it.
func TestTraces(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	file := filepath.Join(t.TempDir(), "traces")
	ctx, stop := context.WithCancel(t.Context())
	m, _, closed, err := OpenMonitor(ctx, MonitorConfig{Program: "catenary up", Traces: file, Env: func(string) string { return "" }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	options, log := topology.Options{EventStoreBytes: 100_000_000, BucketBytes: 10_000_000}, slog.New(slog.DiscardHandler)
	writing, projecting := make(chan struct{}), make(chan struct{})
	first, second, asking := bus.Connect(t), bus.Connect(t), bus.Connect(t)
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := Writer(ctx, first, WriterConfig{Streams: options, Logger: log, Monitor: m, Ready: func() { close(writing) }}); err != nil {
			t.Error(err)
		}
	})
	<-writing
	parts.Go(func() {
		if err := Projector(ctx, second, ProjectorConfig{Streams: options, Logger: log, Monitor: m, Ready: func() { close(projecting) }}); err != nil {
			t.Error(err)
		}
	})
	<-projecting
	const trace = "0af7651916cd43dd8448eb211c80319c"
	_, err = commands.NewClient(dispatch.NewClient(asking)).Send(t.Context(), commands.RegisterNode{Node: "n1"}, dispatch.Options{Trace: "00-" + trace + "-b7ad6b7169203331-01"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node in its bucket", func() bool {
		for _, c := range m.Health.Report(t.Context()).Checks {
			if b, ok := c.Measure(health.BehindEvents); ok && b.Value > 0 {
				return false
			}
		}
		return true
	})
	stop()
	parts.Wait()
	closed()
	spans := map[string]spanOfFile{}
	for _, s := range readSpans(t, file) {
		if s.SpanContext.TraceID == trace {
			spans[s.Name] = s
		}
	}
	command, view := spans["command node.register"], spans["project "+topology.BucketNodes]
	if command.Parent.SpanID != "b7ad6b7169203331" || view.Parent.SpanID != command.SpanContext.SpanID || view.Parent.SpanID == "" {
		t.Errorf("the spans of the trace are %+v", spans)
	}
}

// spanOfFile is what is read back of a span.
type spanOfFile struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
}

func TestListenHTTP(t *testing.T) {
	t.Parallel()
	for given, host := range map[string]string{"0": "http://127.0.0.1:", ":0": "http://127.0.0.1:", "localhost:0": "http://127.0.0.1:", "[::1]:0": "http://[::1]:"} {
		page, err := ListenHTTP(given)
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if !strings.HasPrefix(page.URL(), host) {
			t.Errorf("%s is served at %s", given, page.URL())
		}
		if err := page.listener.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, given := range []string{"a:b:c", "127.0.0.1:nothing", "203.0.113.1:0"} {
		if page, err := ListenHTTP(given); !errors.Is(err, ErrSettings) {
			t.Errorf("%s is served at %s, %v", given, page.URL(), err)
		}
	}
}

func readSpans(t *testing.T, file string) []spanOfFile {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []spanOfFile
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var s spanOfFile
		if err := d.Decode(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
