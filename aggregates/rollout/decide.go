package rollout

import (
	"fmt"
	"slices"
	"time"

	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Decide gives what a command about a rollout leads to. It gives errors of type *[es.Refusal]; others are faults of the program, but
// for a freeze whose time zone is not known here.
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	id, ok := idOf(c.Data)
	if !ok {
		return nil, decision.Unknown(c)
	}
	switch v := admit(s.Status, c.Verb); v {
	case admitted:
	case nothing:
		return nil, nil
	default:
		return nil, v.refuse(id, s)
	}
	if err := walksAlone(w, c); err != nil {
		return nil, err
	}
	switch p := c.Data.(type) {
	case commands.PlanRollout:
		return plan(w, s, c, p)
	case commands.ApproveRollout:
		return approve(s, c, p)
	case commands.StartRollout:
		return start(s, c, p)
	case commands.AdvanceRollout:
		return advance(w, s, c, p)
	case commands.BeginStep:
		return beginStep(w, s, c, p)
	case commands.EndStep:
		return endStep(w, s, c, p)
	case commands.SettleStep:
		return settle(w, s, c, p)
	case commands.RetryStep:
		return retryStep(w, s, c, p)
	case commands.BlockRollout:
		return block(s, c, p)
	case commands.PauseRollout:
		return decision.Record(c.Ref, events.RolloutPaused{Reason: p.Reason}), nil
	case commands.ResumeRollout:
		return decision.Record(c.Ref, events.RolloutResumed{Reason: p.Reason}), nil
	case commands.AbortRollout:
		return decision.Record(c.Ref, events.RolloutAborted{Reason: p.Reason}), nil
	case commands.SupersedeRollout:
		return supersede(w, c, p)
	}
	return nil, decision.Unknown(c)
}

// idOf gives the id that a command about a rollout names.
func idOf(payload any) (string, bool) {
	switch p := payload.(type) {
	case commands.PlanRollout:
		return p.ID, true
	case commands.ApproveRollout:
		return p.ID, true
	case commands.StartRollout:
		return p.ID, true
	case commands.AdvanceRollout:
		return p.ID, true
	case commands.BeginStep:
		return p.ID, true
	case commands.EndStep:
		return p.ID, true
	case commands.SettleStep:
		return p.ID, true
	case commands.RetryStep:
		return p.ID, true
	case commands.BlockRollout:
		return p.ID, true
	case commands.PauseRollout:
		return p.ID, true
	case commands.ResumeRollout:
		return p.ID, true
	case commands.AbortRollout:
		return p.ID, true
	case commands.SupersedeRollout:
		return p.ID, true
	}
	return "", false
}

// walksAlone refuses what only the engine does to whoever does not hold its lease, while somebody does.
func walksAlone(w World, c es.Command) error {
	switch c.Data.(type) {
	case commands.AdvanceRollout, commands.BeginStep, commands.EndStep, commands.BlockRollout:
	default:
		return nil
	}
	fence, held := w.EngineFence()
	if !held || c.Fence == fence {
		return nil
	}
	return &es.Refusal{
		Status: es.StatusFenced, Code: CodeFenced, Message: fmt.Sprintf("rollouts are walked under the fence %d of lease %s, not under %d", fence, commands.EngineLease, c.Fence),
		Hint: "stop acting; take the lease again",
	}
}

func approve(s State, c es.Command, p commands.ApproveRollout) ([]es.KeyedEvent, error) {
	if p.Tier == "" {
		for at := s.Entered; at < len(s.Tiers); at++ {
			switch t := s.Tiers[at]; {
			case t.Steps == 0 || !t.Approval:
			case t.Approved:
				return nil, nil // who asks twice does not agree to the tier behind it, too
			default:
				return decision.Record(c.Ref, events.RolloutApproved{Tier: t.Name, Reason: p.Reason}), nil
			}
		}
		return nil, es.Refuse(CodeNoApproval, fmt.Sprintf("no tier of rollout %s waits for approval", p.ID), "")
	}
	at, ok := s.tier(p.Tier)
	switch {
	case !ok:
		return nil, unknownTier(p.ID, p.Tier)
	case s.Tiers[at].Approved:
		return nil, nil
	case !s.Tiers[at].Approval || at < s.Entered:
		return nil, es.Refuse(CodeNoApproval, fmt.Sprintf("tier %s of rollout %s does not wait for approval", p.Tier, p.ID), "")
	}
	return decision.Record(c.Ref, events.RolloutApproved{Tier: p.Tier, Reason: p.Reason}), nil
}

func start(s State, c es.Command, p commands.StartRollout) ([]es.KeyedEvent, error) {
	first, ok := s.next()
	if !ok {
		return nil, es.Refuse(CodeEmptyPlan, fmt.Sprintf("rollout %s has no steps", p.ID), "")
	}
	return decision.Record(c.Ref, events.RolloutStarted{Reason: p.Reason}, events.RolloutTierEntered{Tier: s.Tiers[first].Name}), nil
}

// block keeps why nothing moves, once.
func block(s State, c es.Command, p commands.BlockRollout) ([]es.KeyedEvent, error) {
	fact := events.RolloutBlocked{Holds: slices.Clone(p.Holds)}
	for i := range fact.Holds {
		fact.Holds[i].Until = fact.Holds[i].Until.UTC()
	}
	if s.Holds == content.Of(fact) {
		return nil, nil
	}
	return decision.Record(c.Ref, fact), nil
}

func supersede(w World, c es.Command, p commands.SupersedeRollout) ([]es.KeyedEvent, error) {
	if err := Open(p.By, w.Rollout(p.By)); err != nil {
		return nil, err
	}
	return decision.Record(c.Ref, events.RolloutSuperseded{By: p.By, Reason: p.Reason}), nil
}

func unknownTier(id, tier string) error {
	return es.Refuse(CodeUnknownTier, fmt.Sprintf("rollout %s has no tier %s", id, tier), "catenary rollout show says which there are")
}

// wait gives a refusal that says when to try again.
func wait(code, message, hint string, now, until time.Time) error {
	r := es.Refuse(code, message, hint)
	if until.After(now) {
		r.RetryAfter = until.Sub(now)
	}
	return r
}
