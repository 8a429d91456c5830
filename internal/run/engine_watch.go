package run

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/health"
	"catenary/internal/telemetry"
	"catenary/rollout"
	"catenary/rollout/walk"
)

// engineWatch is what an engine's process tells its monitor.
type engineWatch struct {
	Monitor
	engine *health.Signal
	forget []func()
}

func newEngineWatch(m Monitor) *engineWatch {
	return &engineWatch{Monitor: m, engine: m.Health.Signal(health.CheckEngine, health.Finding{
		State: health.Fail, Code: health.Starting, Reason: "it is starting: it reads the event stream", Next: "wait: the log says how far it is",
	})}
}

// end takes away all checks.
func (w *engineWatch) end() {
	w.engine.Drop()
	for _, forget := range w.forget {
		forget()
	}
}

// looks begins to look at an engine that has read what there was, whenever somebody asks.
func (w *engineWatch) looks(e *rollout.Engine) {
	w.engine.Drop()
	w.forget = append(w.forget, w.Health.Look(func(ctx context.Context) []health.Check {
		o, err := e.Overview(ctx)
		if errors.Is(err, rollout.ErrEnded) {
			return nil
		}
		f := judgeEngine(o)
		if err != nil {
			f = health.Finding{State: health.Fail, Code: health.Stuck, Reason: "its loop does not answer: " + err.Error(), Next: "start the engine again; another one takes over meanwhile"}
		}
		return []health.Check{{Name: health.CheckEngine, Finding: f}}
	}), w.Metrics.Look(func(ctx context.Context, set telemetry.Set) {
		o, err := e.Overview(ctx)
		if err != nil {
			return
		}
		set(telemetry.EngineEvent, float64(o.Event))
		if o.Lease.Fence > 0 {
			set(telemetry.EngineLease, float64(o.Lease.Fence), o.Lease.Holder, strconv.FormatBool(o.Own))
		}
		set(telemetry.Rollouts, float64(o.Rollouts))
		set(telemetry.StepsPending, float64(o.Pending))
		for reason, n := range o.Blocked {
			set(telemetry.StepsBlocked, float64(n), reason)
		}
	}))
}

// judgeEngine says how an engine is.
func judgeEngine(o rollout.Overview) health.Finding {
	f := health.Finding{State: health.OK, Measures: []health.Measure{
		{Name: health.Rollouts, Value: float64(o.Rollouts)}, {Name: health.Pending, Value: float64(o.Pending)}, {Name: health.InFlight, Value: float64(o.InFlight)},
	}}
	switch {
	case o.Draining:
		f.State, f.Code, f.Reason = health.Warn, health.Paused, fmt.Sprintf("it drains: no step begins any more, and %d are under way", o.Pending)
		f.Next = "wait until it has ended, or start another engine"
	case o.Leads:
		f.Reason = fmt.Sprintf("it walks %d rollouts with %d steps under way", o.Rollouts, o.Pending)
	case o.Rollouts == 0:
		f.Reason = "there is nothing to walk"
	case o.Lease.Fence == 0 || o.Own:
		f.State, f.Code, f.Reason = health.Warn, health.Missing, fmt.Sprintf("%d rollouts are to be walked, and nobody has the lease", o.Rollouts)
		f.Next = "wait twice the lease's span; if it stays so, see whether a writer takes commands"
	default:
		f.Reason = "it stands by: " + o.Lease.Holder + " walks"
	}
	return f
}

// traceSteps gives what traces the engine's commands; nil when nobody does.
func (m Monitor) traceSteps() func(a walk.Action, parent string) (string, func(es.Answer, error)) {
	if m.Tracing == nil {
		return nil
	}
	return func(a walk.Action, parent string) (string, func(es.Answer, error)) {
		about := []telemetry.Attribute{telemetry.Text("catenary.rollout", a.Rollout)}
		if a.Step.Node != "" {
			about = append(about, telemetry.Text("catenary.node", a.Step.Node), telemetry.Text("catenary.module", a.Step.Module))
		}
		span := m.Tracing.Start(parent, "engine "+a.Payload.Ref().Aggregate+"."+a.Payload.Verb(), time.Now(), about...)
		return span.Context(), func(answer es.Answer, err error) {
			if err != nil {
				span.End(err.Error())
				return
			}
			endCommand(span, answer)
		}
	}
}
