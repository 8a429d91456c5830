package steps

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View {
	return perkey.NewSeveral(chain.Steps, events.AggregateRollout, version, fold)
}

type getter = func(key string) (*chain.Step, error)

func fold(get getter, e es.Event, data events.Rollout) ([]chain.Step, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.RolloutStepsPlanned:
		return planned(e, data)
	case events.RolloutStepBegun:
		return change(get, e, data.Tier, data.StepName, func(s *chain.Step) {
			s.Attempt, s.Sent, s.Inputs = data.Attempt, at, data.Inputs
			s.Outcome, s.By, s.Reason, s.Again, s.Reported, s.Ended, s.Driver, s.Outputs = "", "", "", false, time.Time{}, time.Time{}, nil, nil
		})
	case events.RolloutStepEnded:
		return change(get, e, data.Tier, data.StepName, func(s *chain.Step) { ended(s, data, at) })
	case events.RolloutStepRetried:
		return change(get, e, data.Tier, data.StepName, func(s *chain.Step) {
			s.Outcome, s.By, s.Reason, s.Again, s.Sent, s.Reported, s.Ended, s.Tried = "", "", data.Reason, false, time.Time{}, time.Time{}, time.Time{}, 0
		})
	case events.RolloutPlanning, events.RolloutPlanned, events.RolloutApproved, events.RolloutStarted, events.RolloutTierEntered,
		events.RolloutPaused, events.RolloutResumed, events.RolloutAborted, events.RolloutSuperseded, events.RolloutReverted,
		events.RolloutFailed, events.RolloutFinished, events.RolloutBlocked:
		return nil, nil
	}
	return nil, perkey.Unknown(e)
}

func planned(e es.Event, data events.RolloutStepsPlanned) ([]chain.Step, error) {
	id, err := es.UnescapeToken(e.Ref.Key)
	if err != nil {
		return nil, err
	}
	steps := make([]chain.Step, len(data.Steps))
	for i, p := range data.Steps {
		steps[i] = chain.Step{
			Rollout: id, Tier: p.Tier, Node: p.Node, Module: p.Module, Before: p.Before, After: p.After, WaitsFor: p.WaitsFor, Refresh: p.Refresh, Tried: p.Tried,
		}
	}
	return steps, nil
}

func ended(s *chain.Step, e events.RolloutStepEnded, at time.Time) {
	s.Outcome, s.By, s.Reason, s.Again, s.Outputs, s.Driver, s.Ended = e.Outcome, e.By, e.Reason, e.Again, e.Outputs, e.Driver, at
	s.Reported = e.Reported
	if s.Reported.IsZero() && e.By == events.SettledByReport {
		s.Reported = at
	}
	if e.Outcome == events.StepFailed || e.Outcome == events.StepUnknown {
		s.Tried++
	}
}

func change(get getter, e es.Event, tier string, n events.StepName, how func(*chain.Step)) ([]chain.Step, error) {
	key := e.Ref.Key + "." + es.Key(tier, n.Node, n.Module)
	s, err := get(key)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.Wrapf(perkey.Untold(e), "step %s", key)
	}
	how(s)
	return []chain.Step{*s}, nil
}
