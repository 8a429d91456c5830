package aggregates_test

import (
	"fmt"
	"testing"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// BenchmarkRollout walks a rollout of 3,222 steps as the engine does: each begun, reported and ended.
func BenchmarkRollout(b *testing.B) {
	const steps = 3222
	for b.Loop() {
		b.StopTimer()
		l := newLedger(b)
		l.apply(day, modules("web")...)
		var all []events.PlannedStep
		for i := range steps {
			n := fmt.Sprintf("node-%04d", i)
			l.apply(day, nodes(n)...)
			all = append(all, events.PlannedStep{Tier: "all", StepName: stepOf(n), After: version("2")})
		}
		raw, sum, err := events.Strategy{Tiers: []events.Tier{{Name: "all"}}}.Canonical()
		if err != nil {
			b.Fatal(err)
		}
		digest, err := events.PlanDigest{}.With(all...)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		send := func(p es.Payload) {
			if got := l.status(p, day); got != es.StatusAccepted {
				b.Fatalf("%s %s: %s", p.Ref(), p.Verb(), got)
			}
		}
		for part, at := 1, 0; at < steps; part, at = part+1, at+commands.MaxPartSteps {
			p := commands.PlanRollout{ID: "r", Part: part, Steps: all[at:min(steps, at+commands.MaxPartSteps)]}
			if part == 1 {
				p.Head = &events.PlanHead{Strategy: raw, StrategyDigest: sum}
			}
			if at+commands.MaxPartSteps >= steps {
				p.Count, p.Digest = steps, digest.String()
			}
			send(p)
		}
		send(commands.StartRollout{ID: "r"})
		for _, s := range all {
			send(commands.BeginStep{ID: "r", StepName: s.StepName})
			send(commands.Observe{Seen: events.Seen{Node: s.Node, Module: s.Module, Reference: s.After.Reference, Rollout: "r"}, Outcome: commands.OutcomeApplied})
			send(commands.EndStep{ID: "r", StepName: s.StepName, Attempt: 1, StepResult: events.StepResult{Outcome: events.StepDone}})
		}
	}
	b.ReportMetric(float64(steps)*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}
