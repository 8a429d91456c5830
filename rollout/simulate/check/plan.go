package check

import (
	"catenary/es"
	"catenary/events"
)

// whole demands that the event that closes a plan names just the steps that were written down.
func (j *judge) whole(e es.Event, f events.RolloutPlanned) {
	r := j.of(e)
	if r == nil {
		return
	}
	var digest events.PlanDigest
	for _, s := range r.steps {
		next, err := digest.With(s.PlannedStep)
		if err != nil {
			j.say("plan-whole", "%s of rollout %s has no digest: %v", s.StepName, r.id, err)
		}
		digest = next
	}
	if f.Count != len(r.steps) || f.Digest != digest.String() {
		j.say("plan-whole", "the plan of rollout %s is closed with %d steps, and has %d", r.id, f.Count, len(r.steps))
	}
}

// superseded demands of a plan that takes the place of others that they are at their end with it.
func (j *judge) superseded(e es.Event) {
	r := j.of(e)
	if r == nil {
		return
	}
	for _, id := range r.head.Supersedes {
		other := j.rollouts[id]
		if other == nil || other == r || other.status == final || id == r.head.Reverts {
			continue
		}
		done := false
		for by := 1; !done; by++ {
			next, ok := j.inAppend(by)
			if !ok {
				break
			}
			_, is := next.Data.(events.RolloutSuperseded)
			done = is && j.of(next) == other
		}
		if !done {
			j.say("superseded", "rollout %s takes the place of rollout %s, which goes on", r.id, id)
		}
	}
}

// restored demands of a plan that takes the fleet back to a moment that each of its steps leads to what stood then.
func (j *judge) restored(e es.Event) {
	r := j.of(e)
	if r == nil || r.head.Restores.IsZero() {
		return
	}
	for _, s := range r.steps {
		var then *events.Version
		for _, p := range j.past[s.StepName] {
			if !p.at.After(r.head.Restores) {
				then = p.is
			}
		}
		if !s.Refresh && !same(s.After, then) {
			j.say("restored", "rollout %s takes %s back to %s, and at %v it was at %s", r.id, s.StepName, say(s.After), r.head.Restores, say(then))
		}
	}
}
