package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
	"catenary/rollout/simulate"
	"catenary/rollout/walk"
)

// bug is a fault that is planted in what is run.
type bug struct {
	name string
	// rules are those by which it may be found.
	rules []string
	// anew lets the engine die whenever something has happened.
	anew  bool
	parts func() simulate.Parts
}

func bugs() []bug {
	return []bug{
		{name: "a decision skips the before-reference", rules: []string{"before-reference"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: beginningAnyway("plan-stale"), Walker: eager(events.HoldStale, false)}
		}},
		{name: "stale reports count", rules: []string{"end-reported", "failed", "gate"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: remembered(func(seen *events.Seen, _ string) { seen.Source = 0 })}
		}},
		{name: "a step ends by another rollout's report", rules: []string{"end-reported", "failed", "gate"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: remembered(func(seen *events.Seen, rollout string) { seen.Rollout = rollout })}
		}},
		{name: "a restart forgets a notification", rules: []string{"stuck", "due"}, anew: true, parts: func() simulate.Parts {
			return simulate.Parts{Recall: func(e es.Event) es.Event {
				if f, ok := e.Data.(events.RolloutStepEnded); ok {
					f.Notified = nil
					e.Data = f
				}
				return e
			}}
		}},
		{name: "a semaphore is released twice", rules: []string{"semaphore"}, parts: func() simulate.Parts {
			return simulate.Parts{Walker: eager(events.HoldSemaphore, false)}
		}},
		{name: "the failure budget is off by one", rules: []string{"failure-budget"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: strategy(func(t *events.Tier) {
				if t.FailureBudget.Percent == 0 {
					t.FailureBudget = events.ShareOf(t.FailureBudget.Number + 1)
				}
			})}
		}},
		{name: "paused time counts", rules: []string{"end-deadline", "bake"}, parts: func() simulate.Parts { return simulate.Parts{Fold: unpaused()} }},
		{name: "the lease is not renewed", rules: []string{"lease-kept"}, parts: func() simulate.Parts { return simulate.Parts{Unrenewed: true} }},
		{name: "what is under way begins again after a crash", rules: []string{"begin-once"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: beginningAnyway("step-begun"), Walker: eager(events.HoldPending, true)}
		}},
		{name: "a tier is entered while a step is under way", rules: []string{"tier-through"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: hurried}
		}},
		{name: "freezes are judged at the plan alone", rules: []string{"frozen"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(events.FreezeDeclared) any { return events.FreezeLifted{} })}
		}},
		{name: "vetoes are judged at the plan alone", rules: []string{"vetoed"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(events.PublicationVetoed) any { return events.PublicationVetoLifted{} })}
		}},
		{name: "an aborted rollout goes on", rules: []string{"final"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(events.RolloutAborted) any { return events.RolloutBlocked{} })}
		}},
		{name: "the gate takes applied for healthy", rules: []string{"gate"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(f events.AssignmentApplied) any { return events.AssignmentHealthy(f) })}
		}},
		{name: "a roll-back leads to the first version", rules: []string{"revert"}, parts: func() simulate.Parts {
			return simulate.Parts{Plan: func(r plan.Request) plan.Request {
				r.Undo = slices.Clone(r.Undo)
				for i := range r.Undo {
					r.Undo[i].Before = &events.Version{Reference: events.Reference{Package: &events.Package{Name: r.Undo[i].Module, Version: "1"}}}
				}
				return r
			}}
		}},
		{name: "a command is done however late", rules: []string{"semaphore"}, parts: func() simulate.Parts { return simulate.Parts{Undated: true} }},
		{name: "a retry does not wait", rules: []string{"begin-delay"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: strategy(func(t *events.Tier) { t.Delay = "" })}
		}},
	}
}

// mostSeeds is how many seeds a bug may take to be found.
const mostSeeds = 200

// TestBugsAreFound plants one bug after another: each has to be found, and by a rule that is about it.
func TestBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= mostSeeds; seed++ {
				r, err := simulate.Do(simulate.Config{Seed: seed, Anew: b.anew, Parts: b.parts()})
				if err != nil {
					if !slices.Contains(b.rules, "due") {
						t.Fatal(err)
					}
					t.Logf("seed %d: %v", seed, err)
					return
				}
				found := r.Violations()
				for _, v := range found {
					if slices.Contains(b.rules, v.Rule) {
						t.Logf("seed %d: %v", seed, v)
						return
					}
				}
			}
			t.Errorf("not found in %d histories", mostSeeds)
		})
	}
}

// refused says whether a command was refused with a code.
func refused(err error, code string) bool {
	var r *es.Refusal
	return errors.As(err, &r) && r.Code == code
}

// beginningAnyway decides as the world does, but lets a step begin that is refused with a code.
func beginningAnyway(code string) func(*aggregates.World, es.Command) ([]es.KeyedEvent, error) {
	return func(w *aggregates.World, c es.Command) ([]es.KeyedEvent, error) {
		facts, err := w.Decide(c)
		p, begins := c.Data.(commands.BeginStep)
		if !begins || !refused(err, code) {
			return facts, err
		}
		step, _ := w.Steps(p.ID).Step(p.StepName)
		begun := events.RolloutStepBegun{Tier: step.Tier, StepName: p.StepName, Attempt: step.Attempt + 1, Refresh: step.Notified}
		var told any = events.AssignmentEnded{Node: p.Node, Module: p.Module, Rollout: p.ID}
		if step.After != nil {
			told = events.AssignmentAssigned{Told: events.Told{Node: p.Node, Module: p.Module, Reference: step.After.Reference, Rollout: p.ID}}
		}
		return []es.KeyedEvent{{Ref: c.Ref, Data: begun}, {Ref: commands.AssignmentRef(p.Node, p.Module), Data: told}}, nil
	}
}

// hurried decides as the world does, but goes on to the next tier when the first step of a tier has ended.
func hurried(w *aggregates.World, c es.Command) ([]es.KeyedEvent, error) {
	facts, err := w.Decide(c)
	p, ends := c.Data.(commands.EndStep)
	if r := w.Rollout(p.ID); ends && err == nil && len(facts) == 1 && r.Entered < len(r.Tiers) && r.Tiers[r.Entered].Steps > 0 {
		facts = append(facts, es.KeyedEvent{Ref: c.Ref, Data: events.RolloutTierEntered{Tier: r.Tiers[r.Entered].Name}})
	}
	return facts, err
}

// instead folds another fact in the place of each of a kind.
func instead[T any](other func(T) any) func(es.Event) es.Event {
	return func(e es.Event) es.Event {
		if f, ok := e.Data.(T); ok {
			e.Data = other(f)
		}
		return e
	}
}

// strategy folds plans with another strategy.
func strategy(change func(*events.Tier)) func(es.Event) es.Event {
	return instead(func(f events.RolloutPlanning) any {
		s, err := events.ParseStrategy(f.Strategy)
		if err != nil {
			return f
		}
		for i := range s.Tiers {
			change(&s.Tiers[i])
		}
		if raw, _, err := s.Canonical(); err == nil {
			f.Strategy = raw
		}
		return f
	})
}

// once remembers what became of each event: the writer folds it first, and engines fold the same later.
func once(fold func(es.Event) es.Event) func(es.Event) es.Event {
	known := map[uint64]es.Event{}
	return func(e es.Event) es.Event {
		if _, ok := known[e.Sequence]; !ok {
			known[e.Sequence] = fold(e)
		}
		return known[e.Sequence]
	}
}

// remembered changes reports, given the rollout that last told the node.
func remembered(change func(*events.Seen, string)) func(es.Event) es.Event {
	told := map[es.Ref]string{}
	return once(func(e es.Event) es.Event {
		switch f := e.Data.(type) {
		case events.AssignmentAssigned:
			told[e.Ref] = f.Rollout
		case events.AssignmentEnded:
			told[e.Ref] = f.Rollout
		case events.AssignmentApplied:
			change(&f.Seen, told[e.Ref])
			e.Data = f
		case events.AssignmentApplyFailed:
			change(&f.Seen, told[e.Ref])
			e.Data = f
		case events.AssignmentHealthy:
			change(&f.Seen, told[e.Ref])
			e.Data = f
		}
		return e
	})
}

// unpaused lets pauses take no time.
func unpaused() func(es.Event) es.Event {
	paused := map[es.Ref]time.Time{}
	return once(func(e es.Event) es.Event {
		switch e.Data.(type) {
		case events.RolloutPaused:
			paused[e.Ref] = e.Recorded
		case events.RolloutResumed:
			e.Recorded = paused[e.Ref]
		}
		return e
	})
}

// eager gives engines that begin steps which are held for a reason: each once, and with restarts only those that are held when it begins.
func eager(reason string, restarts bool) func(*walk.State) simulate.Walker {
	return func(s *walk.State) simulate.Walker {
		return &eagerWalker{State: s, reason: reason, restarts: restarts, asked: map[events.StepName]bool{}}
	}
}

type eagerWalker struct {
	*walk.State
	reason   string
	restarts bool
	looked   bool
	rollouts []string
	asked    map[events.StepName]bool
}

func (w *eagerWalker) Apply(e es.Event) error {
	if f, ok := e.Data.(events.RolloutPlanning); ok {
		w.rollouts = append(w.rollouts, f.ID)
	}
	return w.State.Apply(e)
}

func (w *eagerWalker) Next(now time.Time) ([]walk.Action, time.Time) {
	due, again := w.State.Next(now)
	if w.restarts && w.looked {
		return due, again
	}
	w.looked = true
	for _, id := range w.rollouts {
		for _, b := range w.Blocked(id, now) {
			n := events.StepName{Node: b.Node, Module: b.Module}
			if b.Reason == w.reason && b.Node != "" && !w.asked[n] {
				w.asked[n] = true
				due = append(due, walk.Action{Payload: commands.BeginStep{ID: id, StepName: n}, Rollout: id, Step: n})
			}
		}
	}
	return due, again
}
