package assignment

import (
	"github.com/cockroachdb/errors"

	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// observe records a report that says something new. A failed try is a fact each time: it was tried again.
func observe(s State, c es.Command, p commands.Observe) ([]es.KeyedEvent, error) {
	if s.Status == None {
		return nil, notAssigned(p.Node, p.Module)
	}
	fact, err := reported(p)
	if err != nil {
		return nil, err
	}
	if p.Outcome != commands.OutcomeApplyFailed && s.Observed == content.Of(p) {
		return nil, nil
	}
	return decision.Record(c.Ref, fact), nil
}

func reported(p commands.Observe) (events.Assignment, error) {
	switch p.Outcome {
	case commands.OutcomeApplied:
		return events.AssignmentApplied{Seen: p.Seen}, nil
	case commands.OutcomeApplyFailed:
		return events.AssignmentApplyFailed{Seen: p.Seen}, nil
	case commands.OutcomeHealthy:
		return events.AssignmentHealthy{Seen: p.Seen}, nil
	case commands.OutcomeUnhealthy:
		return events.AssignmentUnhealthy{Seen: p.Seen}, nil
	case commands.OutcomeRemoved:
		return events.AssignmentRemoved{Seen: p.Seen}, nil
	case commands.OutcomeRemoveFailed:
		return events.AssignmentRemoveFailed{Seen: p.Seen}, nil
	case commands.OutcomeDrifted:
		return events.AssignmentDrifted{Seen: p.Seen, Drift: p.Drift}, nil
	}
	return nil, errors.AssertionFailedf("outcome %q passed validation", p.Outcome)
}
