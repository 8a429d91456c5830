package simulate_test

import (
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates"
	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
	"catenary/rollout/simulate"
	"catenary/rollout/walk"
)

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

// patch is a fault of an engine.
type patch struct{ goneForEver, halfUnseen, allFinishes bool }

// patched gives engines with a fault.
func patched(p patch) func(*walk.State) simulate.Walker {
	return func(s *walk.State) simulate.Walker { return &patchedWalker{State: s, patch: p} }
}

type patchedWalker struct {
	*walk.State
	patch
}

func (w *patchedWalker) SetAway(node string, since time.Time) {
	if !since.IsZero() || !w.goneForEver {
		w.State.SetAway(node, since)
	}
}

func (w *patchedWalker) HalfPlanned() []walk.HalfPlan {
	if w.halfUnseen {
		return nil
	}
	return w.State.HalfPlanned()
}

func (w *patchedWalker) Apply(e es.Event) error {
	if _, failed := e.Data.(events.RolloutFailed); failed && w.allFinishes {
		e.Data = events.RolloutFinished{}
	}
	return w.State.Apply(e)
}

// of lets tracks decide on other facts.
func of(change func(*plan.TrackFacts)) func(chain.Track, plan.TrackFacts) (chain.Track, plan.TrackFacts) {
	return func(t chain.Track, f plan.TrackFacts) (chain.Track, plan.TrackFacts) {
		change(&f)
		return t, f
	}
}

// freed gives steps that wait for nothing.
func freed(steps []events.PlannedStep) []events.PlannedStep {
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].WaitsFor = nil
	}
	return steps
}

// unordered writes plans down whose steps wait for nothing.
func unordered(list []es.Payload) []es.Payload {
	list = slices.Clone(list)
	var digest events.PlanDigest
	for i := range list {
		p, ok := list[i].(commands.PlanRollout)
		if !ok {
			continue
		}
		p.Steps = freed(p.Steps)
		digest, _ = digest.With(p.Steps...) // steps that were planned have a digest
		if p.Digest != "" {
			p.Digest = digest.String()
		}
		list[i] = p
	}
	return list
}

// takingLast writes plans down whose merges are taken when they are closed.
func takingLast(list []es.Payload) []es.Payload {
	takes := func(p es.Payload) bool { _, is := p.(commands.TakeMerge); return is }
	merges := slices.DeleteFunc(slices.Clone(list), func(p es.Payload) bool { return !takes(p) })
	return append(slices.DeleteFunc(slices.Clone(list), takes), merges...)
}

// outlasting decides as the world does, but lets those go on that a plan takes the place of.
func outlasting(w *aggregates.World, c es.Command) ([]es.KeyedEvent, error) {
	facts, err := w.Decide(c)
	if _, plans := c.Data.(commands.PlanRollout); !plans {
		return facts, err
	}
	return slices.DeleteFunc(facts, func(f es.KeyedEvent) bool { _, is := f.Data.(events.RolloutSuperseded); return is }), err
}

// handing decides as the world does, but hands other things on.
func handing(other func(events.StepName, []events.Handed) []events.Handed) func(*aggregates.World, es.Command) ([]es.KeyedEvent, error) {
	return func(w *aggregates.World, c es.Command) ([]es.KeyedEvent, error) {
		facts, err := w.Decide(c)
		var handed []events.Handed
		for i := len(facts) - 1; i >= 0; i-- { // a begin comes before what its node is told
			switch f := facts[i].Data.(type) {
			case events.AssignmentAssigned:
				handed = other(events.StepName{Node: f.Node, Module: f.Module}, slices.Clone(f.Inputs))
				f.Inputs = handed
				facts[i].Data = f
			case events.RolloutStepBegun:
				f.Inputs = handed
				facts[i].Data = f
			}
		}
		return facts, err
	}
}

// unsaid hands values on, and does not say which have changed.
func unsaid(_ events.StepName, list []events.Handed) []events.Handed {
	for i := range list {
		list[i].Changed = nil
	}
	return list
}

// sinceLast says what has changed since a node was last told something, whether it has done that or not.
func sinceLast() func(events.StepName, []events.Handed) []events.Handed {
	last := map[events.StepName]map[events.StepName]map[string]string{}
	return func(n events.StepName, list []events.Handed) []events.Handed {
		had := last[n]
		last[n] = map[events.StepName]map[string]string{}
		for i, h := range list {
			last[n][h.StepName] = h.Values
			list[i].Changed = slices.DeleteFunc(slices.Clone(h.Changed), func(name string) bool {
				before, was := had[h.StepName][name]
				now, is := h.Values[name]
				return was == is && before == now
			})
		}
		return list
	}
}
