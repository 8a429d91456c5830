package rollout

import (
	"fmt"
	"strings"
	"time"

	"catenary/aggregates/assignment"
	"catenary/aggregates/decision"
	"catenary/aggregates/freeze"
	"catenary/aggregates/node"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// beginStep tells a node, in the same append as it says that the step has begun. A node that is right already is done at once, and
// told nothing.
func beginStep(w World, s State, c es.Command, p commands.BeginStep) ([]es.KeyedEvent, error) {
	steps := w.Steps(p.ID)
	step, ok := steps.Step(p.StepName)
	switch {
	case !ok:
		return nil, unknownStep(p.ID, p.StepName)
	case step.Phase == Pending:
		return nil, es.Refuse(CodeStepBegun, fmt.Sprintf("%s has begun", p.StepName), "wait for its report")
	case step.Phase.Ended():
		return nil, es.Refuse(CodeStepEnded, fmt.Sprintf("%s is %s", p.StepName, step.Phase), "try it again with rollout retry-step")
	case !s.entered(step.Tier):
		return nil, es.Refuse(CodeTierNotEntered, fmt.Sprintf("tier %s of rollout %s is not entered yet", step.Tier, p.ID), "advance the rollout first")
	}
	if err := released(p.StepName, step, steps); err != nil {
		return nil, err
	}
	if err := node.Known(p.Node, w.Node(p.Node)); err != nil {
		return nil, err
	}
	if w.Node(p.Node).External {
		return nil, es.Refuse(CodeExternal, fmt.Sprintf("node %s is managed by somebody else: no agent acts on it", p.Node), "settle the step, or plan without the node")
	}
	now := w.Assignment(p.Node, p.Module)
	ours := now.HasRollout(p.ID)
	right := same(now.At(), step.After)
	switch {
	case right && !step.Refresh && !ours:
		return ended(w, s, c, step, events.RolloutStepEnded{
			Tier: step.Tier, StepName: p.StepName, Attempt: step.Attempt, By: events.SettledAlready,
			StepResult: events.StepResult{Outcome: events.StepDone, Outputs: now.Outputs()},
		})
	case !same(now.At(), step.Before) && !(right && ours):
		return nil, es.Refuse(CodePlanStale, fmt.Sprintf("%s is at %s, and the plan was made for %s", p.StepName, say(now.At()), say(step.Before)), "plan again")
	case step.Refresh && step.Notified == 0:
		return nil, es.Refuse(CodeNothingToRefresh, fmt.Sprintf("nothing that %s waits for has changed", p.StepName), "end it as skipped")
	}
	if err := beginnable(w, s, c, p, step); err != nil {
		return nil, err
	}
	told, err := tell(w, s, p, step)
	if err != nil {
		return nil, err
	}
	begun := events.RolloutStepBegun{Tier: step.Tier, StepName: p.StepName, Attempt: step.Attempt + 1, Refresh: step.Notified}
	if first, ok := told[0].Data.(events.AssignmentAssigned); ok {
		begun.Inputs = first.Inputs
	}
	return append(decision.Record(c.Ref, begun), told...), nil
}

func tell(w World, s State, p commands.BeginStep, step Step) ([]es.KeyedEvent, error) {
	if step.After == nil {
		return assignment.End(w, p.StepName, p.ID, s.Reason)
	}
	return assignment.Tell(w, p.StepName, *step.After, p.ID, s.Reason, step.WaitsFor)
}

// released refuses a step while one that it waits for is not done.
func released(n events.StepName, step Step, steps Steps) error {
	for _, wait := range step.WaitsFor {
		before, ok := steps.Step(wait.StepName)
		if !ok || before.Phase != Done {
			return es.Refuse(CodeDependency, fmt.Sprintf("%s waits for %s, which is %s", n, wait.StepName, before.Phase), "begin it when that is done")
		}
	}
	return nil
}

// beginnable holds a step that would change something to the policies of its tier, and to the freezes.
func beginnable(w World, s State, c es.Command, p commands.BeginStep, step Step) error {
	at, _ := s.tier(step.Tier)
	t := s.Tiers[at]
	if t.Pending >= t.AtOnce() {
		return es.Refuse(CodeConcurrency, fmt.Sprintf("%d steps of tier %s are under way: the limit is %d", t.Pending, t.Name, t.AtOnce()), "begin it when one of them has ended")
	}
	if step.Spent > 0 && step.Ended > 0 {
		if again := time.Unix(0, step.Ended).UTC().Add(t.RetryDelay()); c.Received.Before(again) {
			return wait(CodeRetryDelay, fmt.Sprintf("%s is tried again from %s on", p.StepName, again.Format(time.RFC3339)), "", c.Received, again)
		}
	}
	return frozen(w, p.StepName, c.Received)
}

// frozen refuses what a freeze holds, and says until when.
func frozen(w World, n events.StepName, now time.Time) error {
	place := freeze.Place{
		Node: n.Node, Module: n.Module, Labels: []map[string]string{w.Node(n.Node).Labels, w.Module(n.Module).Labels},
	}
	names, err := w.Frozen(place, now)
	if err != nil || len(names) == 0 {
		return err
	}
	thaws, err := w.Thaws(place, now)
	if err != nil {
		return err
	}
	message, hint := fmt.Sprintf("%s is frozen by %s", n, strings.Join(names, ", ")), "wait until it is lifted, or lift it with freeze lift"
	if !thaws.IsZero() {
		message += " until " + thaws.Format(time.RFC3339)
	}
	return wait(CodeFrozen, message, hint, now, thaws)
}

func unknownStep(id string, n events.StepName) error {
	return es.Refuse(CodeUnknownStep, fmt.Sprintf("rollout %s has no open step for %s", id, n), "catenary rollout show says which there are")
}
