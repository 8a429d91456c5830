package walk_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/walk"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// feed gives a state the events of a stream that nobody has to decide on.
type feed struct {
	testing.TB
	*walk.State
	sequence uint64
	now      time.Time
}

func newFeed(t testing.TB) *feed {
	return &feed{TB: t, State: walk.New(walk.Config{Registry: events.Registry()}), now: noon}
}

func (f *feed) event(ref es.Ref, data any) {
	f.sequence++
	f.now = f.now.Add(time.Millisecond)
	if err := f.Apply(es.Event{Sequence: f.sequence, Ref: ref, Recorded: f.now, Effective: f.now, Data: data}); err != nil {
		f.Fatal(err)
	}
}

func version(v string) *events.Version {
	return &events.Version{Reference: events.Reference{Package: &events.Package{Name: "web", Version: v}}}
}

// start lets a rollout run over so many nodes, ten at once.
func (f *feed) start(id string, first, nodes int) {
	ref := commands.RolloutRef(id)
	f.event(ref, events.RolloutPlanning{ID: id, PlanHead: events.PlanHead{Strategy: events.Raw(`{"tiers":[{"name":"all","concurrency":10}]}`)}})
	var steps []events.PlannedStep
	for i := range nodes {
		steps = append(steps, events.PlannedStep{
			Tier: "all", StepName: events.StepName{Node: nodeName(first + i), Module: "module-" + id}, Before: version("1"), After: version("2"),
		})
		if len(steps) == commands.MaxPartSteps || i == nodes-1 {
			f.event(ref, events.RolloutStepsPlanned{Part: 1, Steps: steps})
			steps = nil
		}
	}
	f.event(ref, events.RolloutPlanned{Count: nodes})
	f.event(ref, events.RolloutStarted{})
	f.event(ref, events.RolloutTierEntered{Tier: "all"})
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d.example.org", i) }

// told lets all begin that the engine asks for, and gives what was told.
func (f *feed) told() []walk.Action {
	due, _ := f.Next(f.now)
	for _, a := range due {
		if _, begins := a.Payload.(commands.BeginStep); begins {
			f.event(commands.RolloutRef(a.Rollout), events.RolloutStepBegun{Tier: "all", StepName: a.Step, Attempt: 1})
			f.event(commands.AssignmentRef(a.Step.Node, a.Step.Module), events.AssignmentAssigned{Told: events.Told{
				Node: a.Step.Node, Module: a.Step.Module, Reference: version("2").Reference, Rollout: a.Rollout,
			}})
		}
	}
	return due
}

// fleet makes nodes known that run version 1 of a module for each of the rollouts, which all start.
func (f *feed) fleet(nodes, rollouts, each int) {
	for i := range nodes {
		f.event(commands.NodeRef(nodeName(i)), events.NodeRegistered{Node: nodeName(i), ManagedBy: events.ManagedByAgent})
	}
	for r := range rollouts {
		id, first := fmt.Sprintf("r%d", r), r*each%nodes
		for i := range each {
			n, m := nodeName(first+i), "module-"+id
			f.event(commands.AssignmentRef(n, m), events.AssignmentAssigned{Told: events.Told{Node: n, Module: m, Reference: version("1").Reference}})
		}
		f.start(id, first, each)
	}
}

// BenchmarkReaction measures a report, the end that it leads to and the begin that follows that, while many rollouts are under way: three
// events and two looks.
func BenchmarkReaction(b *testing.B) {
	for _, size := range []struct{ nodes, rollouts, each int }{{10_000, 100, 100}, {10_000, 100, 10_000}} {
		b.Run(fmt.Sprintf("%d rollouts of %d steps", size.rollouts, size.each), func(b *testing.B) {
			before := heap()
			f, open := underWay(b, size.nodes, size.rollouts, size.each)
			held := float64(heap() - before)
			// The last reports of each rollout lead to no begin.
			most := size.rollouts * (size.each - len(open)/size.rollouts)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				if i > 0 && i%most == 0 {
					b.StopTimer()
					f, open = underWay(b, size.nodes, size.rollouts, size.each)
					b.StartTimer()
				}
				a := open[0]
				open = open[1:]
				f.event(commands.AssignmentRef(a.Step.Node, a.Step.Module), events.AssignmentApplied{Seen: events.Seen{
					Node: a.Step.Node, Module: a.Step.Module, Reference: version("2").Reference, Rollout: a.Rollout,
				}})
				due, _ := f.Next(f.now)
				if len(due) != 1 {
					b.Fatalf("a report leads to %d actions", len(due))
				}
				f.event(commands.RolloutRef(a.Rollout), events.RolloutStepEnded{Tier: "all", StepName: a.Step, Attempt: 1, StepResult: events.StepResult{Outcome: events.StepDone}, By: events.SettledByReport})
				open = append(open, f.told()...)
			}
			b.ReportMetric(held/(1<<20), "MiB")
			b.ReportMetric(held/float64(size.rollouts*size.each), "B/step")
		})
	}
}

// underWay gives rollouts of which as many steps are under way as may be, and these steps.
func underWay(b *testing.B, nodes, rollouts, each int) (*feed, []walk.Action) {
	f := newFeed(b)
	f.fleet(nodes, rollouts, each)
	var open []walk.Action
	for due := f.told(); len(due) > 0; due = f.told() {
		open = append(open, due...)
	}
	return f, open
}

// heap is what is held in memory.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
