package rollout

import (
	"fmt"
	"time"

	"catenary/aggregates/assignment"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// endStep says what became of a step, if what it says is so: the node's own report, the deadline, or the policy for one that never
// began.
func endStep(w World, s State, c es.Command, p commands.EndStep) ([]es.KeyedEvent, error) {
	steps := w.Steps(p.ID)
	step, ok := steps.Step(p.StepName)
	switch {
	case !ok:
		return nil, unknownStep(p.ID, p.StepName)
	case step.Phase.Ended():
		return nil, es.Refuse(CodeStepEnded, fmt.Sprintf("%s is %s", p.StepName, step.Phase), "a person can settle one that is unknown")
	case step.Phase == Waiting:
		return endWaiting(w, s, c, p, step, steps)
	case p.Attempt != step.Attempt:
		return nil, es.Refuse(CodeOtherAttempt, fmt.Sprintf("%s is at attempt %d, not %d", p.StepName, step.Attempt, p.Attempt), "")
	}
	by := events.SettledByReport
	now := w.Assignment(p.Node, p.Module)
	report := now.Reported(p.ID)
	p.Outputs = nil
	switch p.Outcome {
	case events.StepDone:
		if said := doneBy(report, step); !said {
			return nil, notReported(p)
		}
		p.Outputs = now.Outputs()
	case events.StepFailed:
		if !report.Bad() {
			return nil, notReported(p)
		}
	case events.StepUnknown:
		by = events.SettledByDeadline
		if deadline := s.Deadline(step, c.Received); c.Received.Before(deadline) {
			return nil, wait(CodeDeadline, fmt.Sprintf("%s has time until %s", p.StepName, deadline.Format(time.RFC3339)), "", c.Received, deadline)
		}
	default:
		return nil, es.Refuse(CodeStepBegun, fmt.Sprintf("%s has begun: it can't be skipped any more", p.StepName), "a person can settle it")
	}
	return ended(w, s, c, step, events.RolloutStepEnded{Tier: step.Tier, StepName: p.StepName, Attempt: step.Attempt, StepResult: p.StepResult, By: by})
}

func doneBy(r assignment.Report, step Step) bool {
	if step.After == nil {
		return r.Gone()
	}
	return r.Here()
}

func notReported(p commands.EndStep) error {
	return es.Refuse(CodeNotReported, fmt.Sprintf("no report about %s that names rollout %s and its build says that it is %s", p.StepName, p.ID, p.Outcome),
		"reports of other rollouts, of other builds and of earlier tries say nothing of it; a person can settle it")
}

// endWaiting ends a step that never began, where the policy says so.
func endWaiting(w World, s State, c es.Command, p commands.EndStep, step Step, steps Steps) ([]es.KeyedEvent, error) {
	if !s.Status.walks() {
		return nil, unknownStep(p.ID, p.StepName)
	}
	if !s.entered(step.Tier) {
		return nil, es.Refuse(CodeTierNotEntered, fmt.Sprintf("tier %s of rollout %s is not entered yet", step.Tier, p.ID), "")
	}
	at, _ := s.tier(step.Tier)
	offline := s.Tiers[at].Offline
	allowed := false
	switch p.Outcome {
	case events.StepSkipped:
		allowed = offline == events.OfflineSkip || hopeless(step, steps) || step.Refresh && step.Notified == 0 && released(p.StepName, step, steps) == nil
	case events.StepFailed:
		allowed = offline == events.OfflineFail
	case events.StepDone, events.StepUnknown:
		return nil, es.Refuse(CodeStepNotBegun, fmt.Sprintf("%s has not begun", p.StepName), "")
	}
	if !allowed {
		return nil, es.Refuse(CodeNotAllowed, fmt.Sprintf("the policy of tier %s does not let %s end as %s before it begins", step.Tier, p.StepName, p.Outcome), "a person can settle it")
	}
	p.Outputs = nil
	return ended(w, s, c, step, events.RolloutStepEnded{Tier: step.Tier, StepName: p.StepName, Attempt: step.Attempt, StepResult: p.StepResult, By: events.SettledByPolicy})
}

// hopeless says whether something that a step waits for has ended and is not done.
func hopeless(step Step, steps Steps) bool {
	for _, wait := range step.WaitsFor {
		if before, ok := steps.Step(wait.StepName); ok && before.Phase.Ended() && before.Phase != Done {
			return true
		}
	}
	return false
}

// settle lets a person say what became of a step that is pending, unknown, or will never begin.
func settle(w World, s State, c es.Command, p commands.SettleStep) ([]es.KeyedEvent, error) {
	step, ok := w.Steps(p.ID).Step(p.StepName)
	switch {
	case !ok:
		return nil, unknownStep(p.ID, p.StepName)
	case step.Phase == Waiting && p.Outcome != events.StepSkipped:
		return nil, es.Refuse(CodeStepNotBegun, fmt.Sprintf("%s has not begun", p.StepName), "settle it as skipped if it shall not")
	case step.Phase.Ended() && step.Phase != StepUnknown:
		return nil, es.Refuse(CodeStepEnded, fmt.Sprintf("%s is %s", p.StepName, step.Phase), "try it again with rollout retry-step")
	}
	fact := events.RolloutStepEnded{
		Tier: step.Tier, StepName: p.StepName, Attempt: step.Attempt, StepResult: events.StepResult{Outcome: p.Outcome, Reason: p.Reason}, By: events.SettledByPerson,
	}
	return ended(w, s, c, step, fact)
}

// retryStep lets a step begin once more that came to an end without being done.
func retryStep(w World, s State, c es.Command, p commands.RetryStep) ([]es.KeyedEvent, error) {
	step, ok := w.Steps(p.ID).Step(p.StepName)
	switch {
	case !ok:
		return nil, unknownStep(p.ID, p.StepName)
	case step.Phase == Pending:
		return nil, es.Refuse(CodeStepBegun, fmt.Sprintf("%s has begun", p.StepName), "wait for its report, or settle it")
	case step.Phase == Done:
		return nil, es.Refuse(CodeStepEnded, fmt.Sprintf("%s is done", p.StepName), "")
	case step.Phase == Waiting && step.Spent == 0:
		return nil, nil
	}
	return decision.Record(c.Ref, events.RolloutStepRetried{Tier: step.Tier, StepName: p.StepName, From: step.Phase.String(), Reason: p.Reason}), nil
}

// ended gives the end of a step and what follows from it at once.
func ended(w World, s State, c es.Command, step Step, fact events.RolloutStepEnded) ([]es.KeyedEvent, error) {
	fact.Reported = fact.Reported.UTC()
	if step.Phase != Pending {
		fact.From = step.Phase.String()
	}
	if s.Status.Final() {
		return decision.Record(c.Ref, fact), nil
	}
	at, _ := s.tier(step.Tier)
	fact.Again = fact.Outcome == events.StepFailed && fact.By == events.SettledByReport && step.Spent < s.Tiers[at].Retry
	if fact.Outcome == events.StepDone && fact.By != events.SettledAlready {
		fact.Notified = step.Notifies
	}
	id := s.ID
	view := overlay{steps: w.Steps(id), put: map[events.StepName]Step{}}
	after, err := s.stepEnded(fact, c.Received, view)
	if err != nil {
		return nil, err
	}
	onward, _, err := after.onward(w, id, c.Received, nil, view)
	return decision.Record(c.Ref, append([]any{fact}, onward...)...), err
}
