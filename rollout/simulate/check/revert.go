package check

import (
	"catenary/es"
	"catenary/events"
)

// planned demands of a plan that takes another rollout back that it leads to what stood before, and forbids what was carried.
func (j *judge) planned(e es.Event) {
	r := j.of(e)
	if r == nil || r.head.Reverts == "" {
		return
	}
	original := j.rollouts[r.head.Reverts]
	if original == nil {
		j.say("revert", "rollout %s takes back %s, which is not known", r.id, r.head.Reverts)
		return
	}
	for _, s := range r.steps {
		switch was := original.step(s.StepName); {
		case was.Tier == "" || was.begun.IsZero():
			j.say("revert", "rollout %s takes back %s, which rollout %s has not told", r.id, s.StepName, original.id)
		case !same(s.After, was.Before):
			j.say("revert", "rollout %s takes %s back to %s, and before rollout %s was %s", r.id, s.StepName, say(s.After), original.id, say(was.Before))
		}
	}
	kept := map[string]bool{}
	for _, t := range r.head.Targets {
		kept[publication(t.Reference)] = true
	}
	reverted, vetoed := false, map[string]bool{}
	for by := 1; ; by++ {
		next, ok := j.inAppend(by)
		if !ok {
			break
		}
		switch next.Data.(type) {
		case events.RolloutReverted:
			reverted = reverted || j.of(next) == original
		case events.PublicationVetoed:
			vetoed[next.Ref.Key] = true
		}
	}
	if !reverted {
		j.say("revert", "rollout %s takes back %s, which does not learn of it", r.id, original.id)
	}
	for _, t := range original.head.Targets {
		if key := publication(t.Reference); !t.IsZero() && !kept[key] && !vetoed[key] && !j.vetoed[key] {
			j.say("revert", "rollout %s takes back %s, and %s is not vetoed", r.id, original.id, t.Version)
		}
	}
}
