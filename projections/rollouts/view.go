package rollouts

import (
	"time"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Rollouts, version, fold) }

func fold(before *chain.Rollout, e es.Event, data events.Rollout) (chain.Rollout, error) {
	at := e.Effective.UTC()
	if planning, ok := data.(events.RolloutPlanning); ok {
		return planned(planning, at)
	}
	if before == nil {
		return chain.Rollout{}, perkey.Untold(e)
	}
	r := *before
	r.Tiers = append([]chain.Tier(nil), r.Tiers...) // the list may be shared with what was given before
	switch data := data.(type) {
	case events.RolloutPlanning:
	case events.RolloutStepsPlanned:
		for _, s := range data.Steps {
			count(&r, s.Tier, func(c *chain.Counts) { c.Steps++ })
		}
		r.Changed += len(data.Steps)
	case events.RolloutPlanned:
		r.Ends, r.Digest, r.Times.Planned, r.State = data.Ends, data.Digest, at, chain.RolloutPlanned
		if data.Approval {
			r.State = chain.RolloutWaitingApproval
		}
	case events.RolloutApproved:
		approve(&r, data.Tier)
	case events.RolloutStarted:
		r.State, r.Times.Started, r.Blocked = chain.RolloutRunning, at, nil
	case events.RolloutTierEntered:
		change(&r, data.Tier, func(t *chain.Tier) { t.Entered = at })
	case events.RolloutStepBegun:
		count(&r, data.Tier, func(c *chain.Counts) { c.Pending++ })
	case events.RolloutStepEnded:
		count(&r, data.Tier, func(c *chain.Counts) { ended(c, data) })
	case events.RolloutStepRetried:
		count(&r, data.Tier, func(c *chain.Counts) { add(c, data.From, -1) })
	case events.RolloutPaused:
		r.State, r.Times.Paused, r.Blocked = chain.RolloutPaused, at, nil
	case events.RolloutResumed:
		r.State, r.Times.Paused, r.Blocked = chain.RolloutRunning, time.Time{}, nil
	case events.RolloutAborted:
		end(&r, chain.RolloutAborted, data.Reason, at)
	case events.RolloutSuperseded:
		r.SupersededBy = data.By
		end(&r, chain.RolloutSuperseded, data.Reason, at)
	case events.RolloutFailed:
		end(&r, chain.RolloutFailed, data.Reason, at)
	case events.RolloutFinished:
		end(&r, chain.RolloutFinished, "", at)
	case events.RolloutReverted:
		r.RevertedBy = data.By
	case events.RolloutBlocked:
		r.Blocked = holds(data.Holds)
	default:
		return chain.Rollout{}, perkey.Unknown(e)
	}
	return r, nil
}

// change changes a tier. What blocked the rollout does so no more.
func change(r *chain.Rollout, tier string, how func(*chain.Tier)) {
	r.Blocked = nil
	for i := range r.Tiers {
		if r.Tiers[i].Name == tier {
			how(&r.Tiers[i])
		}
	}
}

func count(r *chain.Rollout, tier string, how func(*chain.Counts)) {
	change(r, tier, func(t *chain.Tier) { how(&t.Counts) })
}

// ended moves a step from what it was to its outcome. One that is tried again waits.
func ended(c *chain.Counts, e events.RolloutStepEnded) {
	if e.From == "" {
		c.Pending--
	} else {
		add(c, e.From, -1)
	}
	if !e.Again {
		add(c, e.Outcome, 1)
	}
}

func add(c *chain.Counts, phase string, by int) {
	switch phase {
	case events.StepDone:
		c.Done += by
	case events.StepFailed:
		c.Failed += by
	case events.StepUnknown:
		c.Unknown += by
	case events.StepSkipped:
		c.Skipped += by
	}
}

// approve notes the approval. A rollout that waited for it is planned now.
func approve(r *chain.Rollout, tier string) {
	first := ""
	for _, t := range r.Tiers {
		if t.Counts.Steps > 0 {
			first = t.Name
			break
		}
	}
	change(r, tier, func(t *chain.Tier) { t.Approved = true })
	if r.State == chain.RolloutWaitingApproval && tier == first {
		r.State = chain.RolloutPlanned
	}
}

func end(r *chain.Rollout, state, why string, at time.Time) {
	r.State, r.Why, r.Times.Ended, r.Times.Paused, r.Blocked = state, why, at, time.Time{}, nil
}
