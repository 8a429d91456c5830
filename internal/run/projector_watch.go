package run

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"catenary/agent/desk"
	"catenary/audit"
	"catenary/audit/proof"
	"catenary/audit/store"
	"catenary/es"
	"catenary/es/project"
	"catenary/internal/health"
	"catenary/internal/telemetry"
	"catenary/internal/topology"
)

const (
	// lateLag is from how old an event that is not shown a view counts as late: well above [project.RunningLag], so that a busy moment is
	// none.
	lateLag = 10 * time.Second
	// lostLag is from when what a view shows is not to be relied on.
	lostLag = time.Minute
)

// projectorWatch is what a projector's process tells its monitor.
type projectorWatch struct {
	Monitor
	projector *health.Signal
	runner    *project.Runner
	past      *store.Store // nil without one
	proofs    *proof.Log
	desk      atomic.Pointer[desk.Desk] // nil until it is there
	forget    []func()
}

func newProjectorWatch(m Monitor) *projectorWatch {
	return &projectorWatch{Monitor: m, projector: m.Health.Signal(health.CheckProjector, health.Finding{
		State: health.Fail, Code: health.Starting, Reason: "it is starting", Next: "wait: it answers when it has read what it needs; the log says what it waits for",
	})}
}

// looks begins to look at what the projector has, whenever somebody asks.
func (w *projectorWatch) looks() {
	w.forget = append(w.forget, w.Health.Look(w.checkViews), w.Health.Look(w.checkProofs), w.Metrics.Look(w.measureViews), w.Metrics.Look(w.measureNodes))
	if w.past != nil {
		w.forget = append(w.forget, w.Health.Look(w.checkPast), w.Metrics.Look(w.measurePast))
	}
}

// end takes away all checks.
func (w *projectorWatch) end() {
	w.projector.Drop()
	for _, forget := range w.forget {
		forget()
	}
}

// ready gives what says that all services answer.
func (w *projectorWatch) ready(then func()) func() {
	return func() {
		w.projector.OK("its views are folded, and queries are answered")
		if then != nil {
			then()
		}
	}
}

func (w *projectorWatch) checkViews(ctx context.Context) []health.Check {
	status := w.runner.Status(ctx)
	var checks []health.Check
	if status.Reason != "" {
		checks = append(checks, health.Check{Name: "projection", Finding: judgeStandstill(status)})
	}
	for _, v := range status.Views {
		checks = append(checks, health.Check{Name: health.CheckView + v.View, Finding: judgeView(v)})
	}
	return checks
}

// judgeStandstill says why no view goes on.
func judgeStandstill(s project.Status) health.Finding {
	f := health.Finding{State: health.Fail, Code: health.Damaged, Reason: "no view goes on: " + s.Reason, Next: "see what is damaged with: catenary verify; bring the stream back from a replica or a backup"}
	if s.Away {
		f.Code, f.Next = health.Away, "it tries again by itself; see whether the server, and in a cluster the leader of stream "+topology.EventStream+", is there"
	}
	return f
}

// judgeView says how a view is.
func judgeView(v project.ViewStatus) health.Finding {
	f := health.Finding{State: health.OK, Measures: []health.Measure{
		{Name: health.BehindEvents, Value: float64(v.Behind), Unit: "events"}, {Name: health.Lag, Value: v.LagSeconds, Unit: "seconds"}, {Name: health.ParkedCount, Value: float64(v.ParkedCount)},
	}}
	lag := time.Duration(v.LagSeconds * float64(time.Second))
	behind := fmt.Sprintf("it is behind by %d events, the oldest of %s ago", v.Behind, lag.Round(time.Second))
	switch {
	case v.State == project.StateStopped:
		f.State, f.Code, f.Since, f.Reason = health.Fail, health.Stopped, v.Since, "it has stopped: "+v.Reason
		f.Next = "see it with: catenary projections show " + v.View + "; then skip the event, or rebuild the bucket with: catenary rebuild " + v.View
	case v.State == project.StateWaiting:
		f.State, f.Code, f.Reason, f.Next = health.Fail, health.Away, "it can't go on at the moment: "+v.Reason, "it tries again by itself; see whether the server takes values"
	case v.State == project.StatePaused:
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Paused, "it is paused: "+v.Paused.Reason, "catenary projections resume "+v.View
	case v.State == project.StateRebuilding:
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Rebuilding, "a new bucket is being built: "+v.Reason, "wait: readers see the present one until it is built"
	case lag >= lostLag:
		f.State, f.Code, f.Reason, f.Next = health.Fail, health.Behind, behind, "wait while it catches up (catenary projections ls shows how fast); if it does not move, look into the projector's log"
	case lag >= lateLag:
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Behind, behind, "wait: it catches up by itself"
	case v.ParkedCount > 0:
		f.State, f.Code, f.Reason = health.Warn, health.Parked, fmt.Sprintf("%d instances are parked: nothing of them is folded any more", v.ParkedCount)
		f.Next = "see them with: catenary projections show " + v.View
	}
	return f
}

func (w *projectorWatch) checkPast(ctx context.Context) []health.Check {
	state, tail := w.past.Status(), w.runner.Status(ctx).Tail
	f := health.Finding{State: health.OK, Since: state.Since, Measures: []health.Measure{
		{Name: health.BehindEvents, Value: float64(tail - min(tail, state.Event)), Unit: "events"}, {Name: health.ParkedCount, Value: float64(state.ParkedCount)},
	}}
	words, next := state.Words(tail)
	switch {
	case state.Stopped != "":
		f.State, f.Code, f.Reason, f.Next = health.Fail, health.Stopped, words, next
	case state.Trouble != "":
		f.State, f.Code, f.Reason, f.Next = health.Fail, health.Away, words, next
	case state.Paused != nil:
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Paused, words, next
	case state.Building:
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Rebuilding, words, next
	case state.ParkedCount > 0:
		f.State, f.Code, f.Reason = health.Warn, health.Parked, fmt.Sprintf("%d instances are parked: answers about them say so", state.ParkedCount)
		f.Next = "see them with: catenary projections show " + audit.StoreView
	}
	return []health.Check{{Name: "audit store", Finding: f}}
}

func (w *projectorWatch) checkProofs(context.Context) []health.Check {
	s := w.proofs.Status()
	f := health.Finding{State: health.OK, Measures: []health.Measure{{Name: health.Unsigned, Value: float64(s.Events - min(s.Events, s.Signed)), Unit: "events"}}}
	switch {
	case s.Failure != nil:
		f.State, f.Code, f.Reason = health.Fail, health.Damaged, "no checkpoint is signed any more: "+s.Failure.Error()
		f.Next = "compare the record with its checkpoints: catenary audit verify-proof; bring the stream back from a backup if it is another one"
	case !s.Signs:
		f.Reason = "this projector has no key and signs nothing"
	}
	return []health.Check{{Name: "proofs", Finding: f}}
}

func (w *projectorWatch) measureViews(ctx context.Context, set telemetry.Set) {
	for _, v := range w.runner.Status(ctx).Views {
		set(telemetry.ViewEvent, float64(v.Position.Event), v.View)
		set(telemetry.ViewBehind, float64(v.Behind), v.View)
		set(telemetry.ViewLag, v.LagSeconds, v.View)
		set(telemetry.ViewState, 1, v.View, string(v.State))
		set(telemetry.ViewParked, float64(v.ParkedCount), v.View)
		set(telemetry.ViewGeneration, float64(v.Generation), v.View)
	}
	set(telemetry.GenerationsBuilding, float64(w.runner.Building()))
}

func (w *projectorWatch) measurePast(ctx context.Context, set telemetry.Set) {
	state, tail := w.past.Status(), w.runner.Status(ctx).Tail
	goes := 1.
	if state.Stopped != "" || state.Trouble != "" || state.Paused != nil {
		goes = 0
	}
	set(telemetry.AuditEvent, float64(state.Event))
	set(telemetry.AuditBehind, float64(tail-min(tail, state.Event)))
	set(telemetry.AuditParked, float64(state.ParkedCount))
	set(telemetry.AuditGoes, goes)
}

func (w *projectorWatch) measureNodes(_ context.Context, set telemetry.Set) {
	d := w.desk.Load()
	if d == nil {
		return
	}
	counts := map[string]int{desk.On: 0, desk.Off: 0, desk.Unsure: 0, desk.External: 0}
	converged, after := 0, ""
	for {
		page, next := d.Nodes(after, desk.MaxNodes)
		for _, n := range page {
			if n.Retired {
				continue
			}
			counts[n.State]++
			if n.Converged {
				converged++
			}
		}
		if after = next; after == "" {
			break
		}
	}
	for state, n := range counts {
		set(telemetry.Nodes, float64(n), state)
	}
	set(telemetry.NodesConverged, float64(converged))
}

// traceViews gives what traces the values of a view; nil when nobody does.
func (m Monitor) traceViews() func(view string, e *es.Event, values int) func() {
	if m.Tracing == nil {
		return nil
	}
	return func(view string, e *es.Event, values int) func() {
		span := m.Tracing.Start(e.Command.Trace, "project "+view, time.Now(), telemetry.Text("catenary.type", e.Type), telemetry.Number("catenary.event", e.Sequence), telemetry.Number("catenary.values", values))
		return func() { span.End("") }
	}
}

// traceOf gives what tells by which trace an event came; nil when nobody traces.
func (m Monitor) traceOf(events es.Store) func(ctx context.Context, event uint64) string {
	if m.Tracing == nil {
		return nil
	}
	return func(ctx context.Context, event uint64) string {
		ctx, cancel := context.WithTimeout(ctx, statusPatience)
		defer cancel()
		stored, err := events.Get(ctx, event)
		if err != nil {
			return "" // what is not traced is told all the same
		}
		e, err := es.ReadEvent(stored)
		if err != nil {
			return ""
		}
		return e.Command.Trace
	}
}
