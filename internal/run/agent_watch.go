package run

import (
	"context"
	"fmt"
	"time"

	"catenary/agent"
	"catenary/internal/health"
	"catenary/internal/telemetry"
)

// watchedDesk says of each check-in whether there was an answer.
type watchedDesk struct {
	agent.Desk
	answers *health.Signal
}

// CheckIn implements [agent.Desk].
func (d watchedDesk) CheckIn(ctx context.Context, c agent.CheckIn) (agent.Answer, error) {
	a, err := d.Desk.CheckIn(ctx, c)
	switch {
	case err == nil:
		d.answers.OK("")
	case ctx.Err() == nil:
		d.answers.Warn(health.Away, "no answer to a check-in: "+err.Error(), "see whether a projector runs; the node goes on with what it was told last")
	}
	return a, err
}

// looksAtAgent begins to look at an agent, whenever somebody asks; what is given ends that.
func (m Monitor) looksAtAgent(a *agent.Agent) (forget func()) {
	unlook := m.Health.Look(func(context.Context) []health.Check {
		return []health.Check{{Name: "agent", Finding: judgeAgent(a.Status())}}
	})
	unmeasure := m.Metrics.Look(func(_ context.Context, set telemetry.Set) {
		s := a.Status()
		converged := 0.
		if s.Converged {
			converged = 1
		}
		set(telemetry.AgentConverged, converged)
		set(telemetry.AgentUnsent, float64(s.Unsent))
		for state, n := range map[string]int{"failed": len(s.Failed), "drifted": len(s.Drifted), "unhealthy": len(s.Unhealthy), "waiting": len(s.Waiting)} {
			set(telemetry.AgentWrong, float64(n), state)
		}
	})
	return func() {
		unlook()
		unmeasure()
	}
}

// judgeAgent says how an agent is. What it could not bring about is no reason to call it not ready: it is there, and says so.
func judgeAgent(s agent.Status) health.Finding {
	f := health.Finding{State: health.OK, Measures: []health.Measure{{Name: health.Unsent, Value: float64(s.Unsent)}}}
	switch {
	case s.Held != "":
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Stopped, "it does nothing: "+s.Held, "see how the chain knows the node: catenary node show NODE"
	case len(s.Failed) > 0:
		f.State, f.Code, f.Reason = health.Warn, health.Undone, fmt.Sprintf("%s could not be brought about: %s", s.Failed[0].Module, s.Failed[0].Reason)
		f.Next = "see what its commands have said: catenary logs NODE MODULE"
	case len(s.Unhealthy) > 0:
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Undone, s.Unhealthy[0]+" is not healthy", "see what its check says: catenary node show NODE"
	case len(s.Drifted) > 0:
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Undone, s.Drifted[0]+" is not what was applied", "assign it again, or find out who has changed it"
	case s.Doing != nil:
		f.Reason = fmt.Sprintf("it is at %s of %s", s.Doing.Deed, s.Doing.Module)
	case s.Converged:
		f.Reason = "all that the node is told is so"
	}
	return f
}

// didDeeds gives what counts and traces the deeds of an agent; nil when nobody does.
func (m Monitor) didDeeds(node string) func(agent.Action) func(failure string) {
	if m.Metrics == nil && m.Tracing == nil {
		return nil
	}
	return func(a agent.Action) func(string) {
		began, i := time.Now(), a.Instruction
		span := m.Tracing.Start(i.Trace, "agent "+string(a.Deed), began, telemetry.Text("catenary.node", node), telemetry.Text("catenary.module", i.Module),
			telemetry.Text("catenary.rollout", i.Rollout), telemetry.Number("catenary.source", i.Source), telemetry.Number("catenary.attempt", a.Attempt))
		return func(failure string) {
			outcome := "done"
			if failure != "" {
				outcome = "failed"
			}
			m.Metrics.Done(string(a.Deed), outcome, time.Since(began))
			span.End(failure)
		}
	}
}
