package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"catenary/internal/telemetry"
)

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	mux := http.NewServeMux()
	m.Handle(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, telemetry.PathMetrics, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Config{Program: "writer", Version: "1.0.0", Verbs: []telemetry.Verb{{Aggregate: "node", Verb: "register"}}})
	m.Answered("node", "register", "accepted", time.Millisecond)
	m.Answered("node", "register", "accepted", time.Millisecond)
	m.Answered("anything", "that somebody sends", "invalid", time.Millisecond)
	m.Landed(42, 3, time.Millisecond)
	m.Done("apply", "failed", time.Second)
	forget := m.Look(func(_ context.Context, set telemetry.Set) { set(telemetry.ViewBehind, 7, "chain-nodes") })
	text := scrape(t, m)
	for _, want := range []string{
		`catenary_commands_total{aggregate="node",status="accepted",verb="register"} 2`,
		`catenary_commands_total{aggregate="unknown",status="invalid",verb="unknown"} 1`,
		`catenary_command_seconds_count{aggregate="node",verb="register"} 2`,
		"catenary_append_events_sum 3", "catenary_event_sequence 42", `catenary_view_behind_events{view="chain-nodes"} 7`,
		`catenary_agent_deeds_total{deed="apply",outcome="failed"} 1`, `catenary_build_info{program="writer",version="1.0.0"} 1`, "go_goroutines",
	} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want+" ") {
			t.Errorf("the page has no %s", want)
		}
	}
	forget()
	if text := scrape(t, m); strings.Contains(text, "catenary_view_behind_events{") {
		t.Error("what is looked at no more is still on the page")
	}
}

// TestDefinitions: each name is known once, and every metric of the page is defined.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range telemetry.Definitions() {
		if seen[d.Name] || d.Help == "" || d.Part == "" {
			t.Errorf("%+v is there twice, or says too little", d)
		}
		seen[d.Name] = true
	}
	m := telemetry.New(telemetry.Config{Program: "agent"})
	m.Look(func(_ context.Context, set telemetry.Set) {
		for _, d := range telemetry.Definitions() {
			if d.Kind == telemetry.Gauge && d.Name != telemetry.EventSequence && d.Name != telemetry.BuildInfo {
				set(d.Name, 1, d.Labels...)
			}
		}
	})
	m.Answered("x", "y", "accepted", 0)
	m.Done("apply", "done", 0)
	text := scrape(t, m)
	for name := range seen {
		if !strings.Contains(text, "# TYPE "+name+" ") {
			t.Errorf("%s is defined and never on the page", name)
		}
	}
}

// span is what is read back of one.
type span struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
	Status      struct{ Code, Description string }
}

func TestTracing(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	if off, err := telemetry.NewTracing(t.Context(), none, "writer", "1.0.0", nil); off != nil || err != nil {
		t.Errorf("not asked for: %v, %v", off, err)
	}
	var file bytes.Buffer
	tracing, err := telemetry.NewTracing(t.Context(), none, "writer", "1.0.0", &file)
	if err != nil {
		t.Fatal(err)
	}
	above := tracing.Start("", "command", time.Now(), telemetry.Text("catenary.command", "c1"))
	below := tracing.Start(above.Context(), "project", time.Now(), telemetry.Number("catenary.event", 7))
	below.End("")
	above.End("rejected: a rule")
	if err := tracing.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := map[string]span{}
	for d := json.NewDecoder(&file); d.More(); {
		var s span
		if err := d.Decode(&s); err != nil {
			t.Fatal(err)
		}
		spans[s.Name] = s
	}
	command, view := spans["command"], spans["project"]
	if command.SpanContext.TraceID == "" || view.SpanContext.TraceID != command.SpanContext.TraceID || view.Parent.SpanID != command.SpanContext.SpanID {
		t.Errorf("they are not one trace: %+v and %+v", command, view)
	}
	if command.Status.Code != "Error" || command.Status.Description != "rejected: a rule" || view.Status.Code != "Unset" {
		t.Errorf("they end as %+v and %+v", command.Status, view.Status)
	}
}

// TestNobodyCounts: what is told to nobody costs nothing and breaks nothing.
func TestNobodyCounts(t *testing.T) {
	t.Parallel()
	var m *telemetry.Metrics
	m.Answered("node", "register", "accepted", 0)
	m.Landed(1, 1, 0)
	m.Stands(1)
	m.Done("apply", "done", 0)
	m.Look(nil)()
	var tracing *telemetry.Tracing
	span := tracing.Start("", "x", time.Now())
	span.End("")
	if span.Context() != "" || tracing.Close(t.Context()) != nil {
		t.Error("nobody traces, and yet there is something")
	}
}

func BenchmarkAnswered(b *testing.B) {
	m := telemetry.New(telemetry.Config{Verbs: []telemetry.Verb{{Aggregate: "node", Verb: "register"}}})
	for b.Loop() {
		m.Answered("node", "register", "accepted", time.Millisecond)
	}
}
