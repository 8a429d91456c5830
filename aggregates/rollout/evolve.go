package rollout

import (
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/content"
	"catenary/events"
)

// Evolve gives the state after a fact that was recorded at a time, whose JSON has at most the given number of bytes, and changes the
// steps with it. It gives errors for facts that no rollout can have: nothing may be decided after that.
func Evolve(s State, fact events.Rollout, at time.Time, bytes int, steps StepTable) (State, error) {
	switch e := fact.(type) {
	case events.RolloutPlanning:
		return begin(e, bytes)
	case events.RolloutStepsPlanned:
		return s.plan(e, steps)
	case events.RolloutPlanned:
		s.Status = Planned
		if e.Approval {
			s.Status = WaitingApproval
		}
		return s, nil
	case events.RolloutApproved:
		return s.approve(e), nil
	case events.RolloutStarted:
		s.Status = Running
		return s.moved(), nil
	case events.RolloutTierEntered:
		return s.enter(e), nil
	case events.RolloutStepBegun:
		return s.stepBegun(e, at, steps)
	case events.RolloutStepEnded:
		return s.stepEnded(e, at, steps)
	case events.RolloutStepRetried:
		return s.stepRetried(e, steps)
	case events.RolloutPaused:
		s.Status, s.PausedAt = Paused, at.UnixNano()
		return s.moved(), nil
	case events.RolloutResumed:
		s.Paused, s.PausedAt, s.Status = s.pausedUntil(at), 0, Running
		return s.moved(), nil
	case events.RolloutAborted:
		return s.end(Aborted, at, steps), nil
	case events.RolloutSuperseded:
		return s.end(Superseded, at, steps), nil
	case events.RolloutFailed:
		return s.end(Failed, at, steps), nil
	case events.RolloutFinished:
		return s.end(Finished, at, steps), nil
	case events.RolloutReverted:
		s.RevertedBy = e.By
		return s, nil
	case events.RolloutBlocked:
		s.Holds = content.Of(e)
		return s, nil
	}
	return s, nil
}

func begin(e events.RolloutPlanning, bytes int) (State, error) {
	tiers, err := tiersOf(e.Strategy)
	return State{
		Status: Planning, ID: e.ID, Reason: e.Reason, Reverts: e.Reverts, Supersedes: e.Supersedes, Targets: e.Targets,
		Strategy: e.Strategy, Tiers: tiers, Bytes: uint32(bytes),
	}, err
}

func tiersOf(strategy events.Raw) ([]Tier, error) {
	parsed, err := events.ParseStrategy(strategy)
	if err != nil {
		return nil, err
	}
	ordered, err := parsed.Ordered()
	if err != nil {
		return nil, err
	}
	tiers := make([]Tier, len(ordered))
	for i, t := range ordered {
		tiers[i] = Tier{Tier: t}
	}
	return tiers, nil
}

// moved forgets what blocked the rollout.
func (s State) moved() State {
	s.Holds = content.Digest{}
	return s
}

// withTiers gives a copy whose tiers can be changed.
func (s State) withTiers() State {
	s.Tiers = slices.Clone(s.Tiers)
	return s
}

func (s State) plan(e events.RolloutStepsPlanned, steps StepTable) (State, error) {
	s = s.withTiers()
	for _, p := range e.Steps {
		at, ok := s.tier(p.Tier)
		if !ok {
			return s, errors.Newf("the strategy has no tier %q", p.Tier)
		}
		s.Tiers[at].Steps++
		steps.Put(p.StepName, planned(p))
		if p.After == nil {
			s.Ends++
		}
		for _, w := range p.WaitsFor {
			before, ok := steps.Step(w.StepName)
			if !ok {
				return s, errors.Newf("%s waits for %s, which is not planned", p.StepName, w.StepName)
			}
			if w.Notify {
				before.Notifies = append(slices.Clip(before.Notifies), p.StepName)
				steps.Put(w.StepName, before)
			}
		}
	}
	s.Parts, s.Count = e.Part, s.Count+len(e.Steps)
	var err error
	s.Digest, err = s.Digest.With(e.Steps...)
	return s, err
}

func (s State) approve(e events.RolloutApproved) State {
	at, ok := s.tier(e.Tier)
	if !ok {
		return s
	}
	s = s.withTiers()
	s.Tiers[at].Approved = true
	if first, ok := s.next(); s.Status == WaitingApproval && ok && first == at {
		s.Status = Planned
	}
	return s.moved()
}

func (s State) enter(e events.RolloutTierEntered) State {
	if at, ok := s.tier(e.Tier); ok {
		s.Entered = max(s.Entered, at+1)
	}
	return s.moved()
}

func (s State) stepBegun(e events.RolloutStepBegun, at time.Time, steps StepTable) (State, error) {
	step, s, err := s.change(e.StepName, Pending, steps)
	if err != nil {
		return s, err
	}
	step.Attempt, step.Begun, step.Paused = e.Attempt, at.UnixNano(), s.pausedUntil(at)
	steps.Put(e.StepName, step)
	s.Begun = true
	return s.moved(), nil
}

func (s State) stepEnded(e events.RolloutStepEnded, at time.Time, steps StepTable) (State, error) {
	phase, ok := phaseOf(e.Outcome)
	if !ok {
		return s, errors.Newf("%s can't end as %q", e.StepName, e.Outcome)
	}
	if e.Again {
		phase = Waiting
	}
	step, s, err := s.change(e.StepName, phase, steps)
	if err != nil {
		return s, err
	}
	step.Ended = at.UnixNano()
	if phase == Done {
		step.Notified = 0 // only a try that is done has served them
	}
	if e.Outcome == events.StepFailed || e.Outcome == events.StepUnknown {
		step.Spent++
	}
	steps.Put(e.StepName, step)
	if place, ok := s.tier(step.Tier); ok {
		s.Tiers[place].Moved, s.Tiers[place].PausedThen = at.UnixNano(), s.pausedUntil(at)
	}
	for _, n := range e.Notified {
		told, ok := steps.Step(n)
		if !ok {
			return s, errors.Newf("%s can't tell %s, which is not planned", e.StepName, n)
		}
		told.Notified++
		steps.Put(n, told)
	}
	if s.Status.Final() {
		steps.Drop(e.StepName)
	}
	return s.moved(), nil
}

func (s State) stepRetried(e events.RolloutStepRetried, steps StepTable) (State, error) {
	step, s, err := s.change(e.StepName, Waiting, steps)
	if err != nil {
		return s, err
	}
	step.Spent, step.Ended = 0, 0
	steps.Put(e.StepName, step)
	return s.moved(), nil
}

// change gives a step in another phase, and the state that counts it there.
func (s State) change(n events.StepName, to Phase, steps StepTable) (Step, State, error) {
	step, ok := steps.Step(n)
	if !ok {
		return Step{}, s, errors.Newf("%s is not planned", n)
	}
	if at, ok := s.tier(step.Tier); ok {
		s = s.withTiers()
		s.Tiers[at].count(step.Phase, -1)
		s.Tiers[at].count(to, 1)
	}
	step.Phase = to
	return step, s, nil
}

// end makes the rollout final, and keeps of it what others need. Steps that are pending stay to be settled, and have the time that their tier gave
// them.
func (s State) end(status Status, at time.Time, steps StepTable) State {
	var gone []events.StepName
	left := map[events.StepName]Step{}
	steps.All(func(n events.StepName, step Step) {
		if step.Phase != Pending {
			gone = append(gone, n)
			return
		}
		step.Due = s.Deadline(step, at).UnixNano()
		left[n] = step
	})
	for _, n := range gone {
		steps.Drop(n)
	}
	for n, step := range left {
		steps.Put(n, step)
	}
	return State{Status: status, Reverts: s.Reverts, RevertedBy: s.RevertedBy, Begun: s.Begun, Targets: s.Targets}
}
