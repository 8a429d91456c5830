package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// advance goes on to the next tier or to the end, or says why it can't.
func advance(w World, s State, c es.Command, p commands.AdvanceRollout) ([]es.KeyedEvent, error) {
	facts, why, err := s.onward(w, p.ID, c.Received, p.Offline, w.Steps(p.ID))
	switch {
	case err != nil:
		return nil, err
	case len(facts) == 0:
		return nil, why
	}
	return decision.Record(c.Ref, facts...), nil
}

// onward gives what follows when the present tier is through: the next one, or the end. It follows at once when too much has failed. Where
// nothing follows, why is the refusal that says so.
//
// offline are steps whose nodes are away; they stay open where their tier waits for nodes.
func (s State) onward(w World, id string, now time.Time, offline []events.StepName, steps Steps) (facts []any, why, err error) {
	for at := range s.Entered {
		if t := s.Tiers[at]; t.Failed+t.Unknown > t.Budget() {
			return []any{events.RolloutFailed{Tier: t.Name, Reason: overspent(t, t.Failed+t.Unknown)}}, nil, nil
		}
	}
	if s.Status != Running || s.Entered == 0 {
		return nil, es.Refuse(CodeNotStarted, fmt.Sprintf("rollout %s is %s", id, s.Status), ""), nil
	}
	open, why := s.leftOpen(id, offline, steps)
	if why != nil {
		return nil, why, nil
	}
	fails, why := s.well(w, id, now, steps)
	if fails != nil || why != nil {
		return fails, why, nil
	}
	at, more := s.next()
	switch {
	case !more && len(open) > 0:
		return nil, es.Refuse(CodeStepsOpen, fmt.Sprintf("%s of rollout %s wait for their nodes", decision.Count(len(open), "step"), id), "settle them as skipped to end without them"), nil
	case !more:
		return []any{s.finished()}, nil, nil
	case s.Tiers[at].Approval && !s.Tiers[at].Approved:
		return nil, es.Refuse(CodeApprovalNeeded, fmt.Sprintf("tier %s of rollout %s waits for approval", s.Tiers[at].Name, id), "approve it first"), nil
	}
	return []any{events.RolloutTierEntered{Tier: s.Tiers[at].Name, Open: open}}, nil, nil
}

func overspent(t Tier, failed int) string {
	return fmt.Sprintf("%d of %s failed or are not known: the budget of tier %s is %d", failed, decision.Count(t.Steps, "step"), t.Name, t.Budget())
}

// mostUnwell is how many places a reason names: enough to look at, whatever the size of the fleet.
const mostUnwell = 3

// unwell names places that are not well.
func unwell(places []events.StepName) string {
	slices.SortFunc(places, func(a, b events.StepName) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Module, b.Module))
	})
	if len(places) == 1 {
		return places[0].String() + " is not well; "
	}
	var names []string
	for _, n := range places[:min(len(places), mostUnwell)] {
		names = append(names, n.String())
	}
	if more := len(places) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ") + " are not well; "
}

func (s State) finished() events.RolloutFinished {
	var sum events.RolloutFinished
	for _, tier := range s.Tiers {
		sum.Done += tier.Done
		sum.Failed += tier.Failed
		sum.Unknown += tier.Unknown
		sum.Skipped += tier.Skipped
	}
	return sum
}

// leftOpen gives the steps without an outcome of the tiers that were entered, if all of them may stay so: their nodes are away, and
// their tier waits for nodes without holding the others up.
func (s State) leftOpen(id string, offline []events.StepName, steps Steps) ([]events.StepName, error) {
	var open []events.StepName
	for _, n := range offline {
		step, ok := steps.Step(n)
		at, known := s.tier(step.Tier)
		if !ok || !known || at >= s.Entered || step.Phase.Ended() {
			continue
		}
		if o := s.Tiers[at].Offline; (o == "" || o == events.OfflineWait) && !slices.Contains(open, n) {
			open = append(open, n)
		}
	}
	left := -len(open)
	for _, t := range s.Tiers[:s.Entered] {
		left += t.Open()
	}
	if left > 0 {
		return nil, es.Refuse(CodeTierIncomplete, fmt.Sprintf("%s of rollout %s have no outcome yet", decision.Count(left, "step"), id), "wait for their reports")
	}
	return open, nil
}

// well says whether the present tier has stayed well for long enough. Only reports count that name this rollout and what it told. It gives
// the failure of a tier of which too much is not well.
func (s State) well(w World, id string, now time.Time, steps Steps) (fails []any, why error) {
	t := s.Tiers[s.Entered-1]
	healthy := t.Gate == events.GateHealthy
	if !healthy && t.BakeTime() == 0 {
		return nil, nil
	}
	var bad []events.StepName
	silent := 0
	steps.All(func(n events.StepName, step Step) {
		if step.Tier != t.Name || step.Phase != Done || step.After == nil {
			return
		}
		now := w.Assignment(n.Node, n.Module)
		switch r := now.Reported(id); {
		case r.Bad():
			bad = append(bad, n)
		case !now.HasRollout(id):
			// It was right already, or others have told it something since: it is not this rollout's to judge.
		case healthy && !r.Well():
			silent++
		}
	})
	if failed := t.Failed + t.Unknown + len(bad); len(bad) > 0 && failed > t.Budget() {
		return []any{events.RolloutFailed{Tier: t.Name, Reason: unwell(bad) + overspent(t, failed)}}, nil
	}
	if silent > 0 {
		return nil, es.Refuse(CodeGate, fmt.Sprintf("%s of tier %s are not reported healthy", decision.Count(silent, "step"), t.Name), "wait for their reports")
	}
	baked := t.Moved + int64(t.BakeTime()) + int64(s.pausedUntil(now)-t.PausedThen)
	if until := time.Unix(0, baked).UTC(); now.Before(until) {
		return nil, wait(CodeBake, fmt.Sprintf("tier %s of rollout %s bakes until %s", t.Name, id, until.Format(time.RFC3339)), "", now, until)
	}
	return nil, nil
}
