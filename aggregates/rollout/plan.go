package rollout

import (
	"fmt"

	"catenary/aggregates/decision"
	"catenary/aggregates/track"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// plan writes a part of a plan down, and closes it when the part says so.
func plan(w World, s State, c es.Command, p commands.PlanRollout) ([]es.KeyedEvent, error) {
	if p.Part != s.Parts+1 && !(p.Part == 1 && s.Status == Unknown) {
		return nil, es.Refuse(CodePlanPart, fmt.Sprintf("part %d of rollout %s can't follow part %d", p.Part, p.ID, s.Parts),
			"send the parts in order, each once; where another plan of this id was left half-way, abort that or take another id")
	}
	var facts []any
	steps := w.Steps(p.ID)
	if p.Head != nil {
		head, err := planHead(w, p)
		if err != nil {
			return nil, err
		}
		if s, err = begin(head, 0); err != nil {
			return nil, err
		}
		facts = append(facts, head)
	}
	if err := plannable(s, p, steps); err != nil {
		return nil, err
	}
	if len(p.Steps) > 0 {
		facts = append(facts, events.RolloutStepsPlanned{Part: p.Part, Steps: p.Steps})
	}
	if p.Digest == "" {
		return decision.Record(c.Ref, facts...), nil
	}
	after, err := s.plan(events.RolloutStepsPlanned{Part: p.Part, Steps: p.Steps}, overlay{steps: steps, put: map[events.StepName]Step{}})
	if err != nil {
		return nil, err
	}
	closing, err := closed(after, p)
	if err != nil {
		return nil, err
	}
	others, err := others(w, after, c)
	return append(decision.Record(c.Ref, append(facts, closing)...), others...), err
}

// planHead checks what is planned against what is there, and gives it in the form that is stored.
func planHead(w World, p commands.PlanRollout) (events.RolloutPlanning, error) {
	head := events.RolloutPlanning{ID: p.ID, PlanHead: *p.Head}
	head.Restores = head.Restores.UTC()
	parsed, err := events.ParseStrategy(head.Strategy)
	if err != nil {
		return head, err
	}
	if head.Strategy, head.StrategyDigest, err = parsed.Canonical(); err != nil {
		return head, err
	}
	if head.Track != "" {
		if err := ofTrack(w, head.PlanHead); err != nil {
			return head, err
		}
	}
	if head.Reverts != "" {
		if err := revertible(head.Reverts, w.Rollout(head.Reverts)); err != nil {
			return head, err
		}
	}
	for _, id := range head.Supersedes {
		if w.Rollout(id).Status == Unknown {
			return head, Open(id, State{})
		}
	}
	return head, nil
}

// ofTrack refuses a plan in the name of a track that does not carry what is planned.
func ofTrack(w World, h events.PlanHead) error {
	t := w.Track(h.Track)
	if err := track.Known(h.Track, t); err != nil {
		return err
	}
	for _, target := range h.Targets {
		if !t.Carries(target.Module) {
			return es.Refuse(CodeNotOfTrack, fmt.Sprintf("track %s does not carry module %s", h.Track, target.Module), "plan it by hand, or change the track")
		}
	}
	return nil
}

// revertible refuses to take back what has done nothing, or what is taken back already.
func revertible(id string, s State) error {
	switch {
	case s.Status == Unknown:
		return Open(id, s)
	case s.RevertedBy != "":
		return es.Refuse(CodeReverted, fmt.Sprintf("rollout %s is taken back by rollout %s", id, s.RevertedBy), "look at that one")
	case !s.Begun:
		return es.Refuse(CodeNothingToRevert, fmt.Sprintf("rollout %s is %s, and no step of it has begun: there is nothing to take back", id, s.Status), "abort it if it shall not start")
	}
	return nil
}

// plannable refuses steps that the rollout can't have.
func plannable(s State, p commands.PlanRollout, steps Steps) error {
	if n := s.Count + len(p.Steps); n > commands.MaxPlanSteps {
		return es.Refuse(CodePlanTooLarge, fmt.Sprintf("rollout %s would have %d steps: the limit is %d", p.ID, n, commands.MaxPlanSteps), "plan for fewer nodes at once")
	}
	here := make(map[events.StepName]string, len(p.Steps))
	for _, step := range p.Steps {
		if _, ok := s.tier(step.Tier); !ok {
			return unknownTier(p.ID, step.Tier)
		}
		_, before := steps.Step(step.StepName)
		if _, twice := here[step.StepName]; before || twice {
			return es.Refuse(CodeDuplicateStep, fmt.Sprintf("rollout %s has two steps for %s", p.ID, step.StepName), "a rollout changes a module on a node once")
		}
		for _, wait := range step.WaitsFor {
			tier, ok := here[wait.StepName]
			if earlier, found := steps.Step(wait.StepName); found {
				tier, ok = earlier.Tier, true
			}
			if !ok || tier != step.Tier {
				return es.Refuse(CodeWaitsForLater, fmt.Sprintf("%s waits for %s, which is not before it in tier %s", step.StepName, wait.StepName, step.Tier),
					"write steps down after those they wait for; tiers are in order anyway")
			}
		}
		here[step.StepName] = step.Tier
	}
	return nil
}

// closed gives the event that makes a plan of the parts.
func closed(s State, p commands.PlanRollout) (events.RolloutPlanned, error) {
	fact := events.RolloutPlanned{Count: s.Count, Digest: s.Digest.String(), Ends: s.Ends}
	switch {
	case s.Count == 0:
		return fact, es.Refuse(CodeEmptyPlan, fmt.Sprintf("rollout %s has no steps", p.ID), "there is nothing to do")
	case p.Count != s.Count || p.Digest != fact.Digest:
		return fact, es.Refuse(CodePlanDigest, fmt.Sprintf("rollout %s has %d steps with digest %s, not %d with %s", p.ID, s.Count, fact.Digest, p.Count, p.Digest),
			"some part is missing or another one: abort it and plan again")
	case s.Ends > 0 && p.Confirm == nil:
		return fact, es.Refuse(CodeConfirmCount, fmt.Sprintf("rollout %s ends %s", p.ID, decision.Count(s.Ends, "assignment")), fmt.Sprintf("confirm with the count %d if that is meant", s.Ends))
	case p.Confirm != nil && *p.Confirm != s.Ends:
		return fact, es.Refuse(CodeConfirmCount, fmt.Sprintf("rollout %s ends %s; %d is confirmed", p.ID, decision.Count(s.Ends, "assignment"), *p.Confirm),
			fmt.Sprintf("confirm with the count %d if that is meant", s.Ends))
	}
	if first, ok := s.next(); ok {
		fact.Approval = s.Tiers[first].Approval
	}
	return fact, nil
}

// others gives what closing a plan does to other rollouts: the one that it takes back is given up and what it carried is vetoed,
// those that it replaces are superseded.
func others(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	var facts []es.KeyedEvent
	if s.Reverts != "" {
		original := w.Rollout(s.Reverts)
		if err := revertible(s.Reverts, original); err != nil {
			return nil, err
		}
		ref := commands.RolloutRef(s.Reverts)
		if !original.Status.Final() {
			facts = decision.Record(ref, events.RolloutAborted{Reason: "taken back by rollout " + s.ID})
		}
		facts = append(facts, decision.Record(ref, events.RolloutReverted{By: s.ID})...)
		facts = append(facts, vetoes(w, s, original)...)
	}
	for _, id := range s.Supersedes {
		if id != s.Reverts && id != s.ID && !w.Rollout(id).Status.Final() {
			facts = append(facts, decision.Record(commands.RolloutRef(id), events.RolloutSuperseded{By: s.ID, Reason: s.Reason})...)
		}
	}
	return facts, nil
}

// vetoes forbids what a rollout carried that is taken back, but for what the one that takes it back carries itself.
func vetoes(w World, s, original State) []es.KeyedEvent {
	var facts []es.KeyedEvent
	done := map[string]bool{}
	for _, t := range s.Targets {
		done[t.Reference.String()] = true
	}
	for _, t := range original.Targets {
		name := t.Reference.String()
		if t.IsZero() || done[name] {
			continue
		}
		done[name] = true
		if p := w.Publication(t.Reference); !p.Recorded || p.Veto != nil {
			continue
		}
		why := fmt.Sprintf("rollout %s was taken back by rollout %s", s.Reverts, s.ID)
		if s.Reason != "" {
			why += ": " + s.Reason
		}
		facts = append(facts, decision.Record(commands.PublicationRef(t.Reference), events.PublicationVetoed{Reason: why})...)
	}
	return facts
}

// overlay holds steps that were not recorded yet on top of those that were.
type overlay struct {
	steps Steps
	put   map[events.StepName]Step
}

// Step gives a step.
func (o overlay) Step(n events.StepName) (Step, bool) {
	if s, ok := o.put[n]; ok {
		return s, true
	}
	return o.steps.Step(n)
}

// All gives every step that was recorded, as it is by now.
func (o overlay) All(visit func(events.StepName, Step)) {
	o.steps.All(func(n events.StepName, s Step) {
		if now, changed := o.put[n]; changed {
			s = now
		}
		visit(n, s)
	})
}

// Put keeps a step.
func (o overlay) Put(n events.StepName, s Step) { o.put[n] = s }

// Drop does nothing: no plan forgets a step.
func (o overlay) Drop(events.StepName) {}
