package store

import (
	"catenary/es"
	"catenary/events"
)

// States of what a node reports.
const (
	stateRuns    = "runs"
	stateRemoved = "removed"
	// stateFailed is that of a module of which nothing was ever reported to run.
	stateFailed = "failed"
)

// ranKind folds what nodes report to run.
type ranKind struct{}

func (ranKind) name() string { return kindRan }

func (ranKind) aggregates() []string { return []string{events.AggregateAssignment} }

func (ranKind) fold(e es.Event, before func(string) (*fact, error)) ([]change, error) {
	data, ok := e.Data.(events.Assignment)
	if !ok {
		return nil, unknown(e)
	}
	stood, err := before(e.Ref.Key)
	if err != nil {
		return nil, err
	}
	at := instantOf(e.Effective)
	var seen events.Seen
	f := &fact{since: at, state: stateFailed}
	if stood != nil {
		f = &fact{
			stands: stood.stands, state: stood.state, reference: stood.reference, build: stood.build, rollout: stood.rollout,
			assigned: stood.assigned, since: stood.since, healthy: stood.healthy, drift: stood.drift,
		}
	}
	switch data := data.(type) {
	case events.AssignmentApplied:
		seen = data.Seen
		applied := f.runs(data.Seen, at)
		applied.healthy, applied.drift = nil, "" // neither is known yet of what was just applied
		f = applied
	case events.AssignmentHealthy:
		seen = data.Seen
		f = f.judged(data.Seen, at, true)
	case events.AssignmentUnhealthy:
		seen = data.Seen
		f = f.judged(data.Seen, at, false)
	case events.AssignmentDrifted:
		seen = data.Seen
		f = f.runs(data.Seen, at)
		f.drift = data.Drift
	case events.AssignmentRemoved:
		seen = data.Seen
		f = &fact{state: stateRemoved, since: at}
	case events.AssignmentApplyFailed:
		seen = data.Seen // what it names is what could not be done: the node runs what it ran
	case events.AssignmentRemoveFailed:
		seen = data.Seen
	case events.AssignmentAssigned, events.AssignmentMovedIn, events.AssignmentPended, events.AssignmentEnded, events.AssignmentMovedOut:
		return nil, nil
	default:
		return nil, unknown(e)
	}
	f.reported = at
	return []change{{kind: kindRan, key: e.Ref.Key, node: seen.Node, module: seen.Module, fact: f}}, nil
}

// runs gives what a report says to run, after what was reported before. A report need not repeat what that was; when it names
// something else, health and drift were about another thing.
func (f *fact) runs(s events.Seen, at instant) *fact {
	names := s.Build != "" || !s.Reference.IsZero()
	if f.stands && (!names || s.Build == f.build && s.Reference.Equal(f.reference)) {
		return f
	}
	return &fact{
		stands: true, state: stateRuns, reference: s.Reference, build: s.Build, rollout: s.Rollout, assigned: at, since: at,
	}
}

func (f *fact) judged(s events.Seen, at instant, healthy bool) *fact {
	f = f.runs(s, at)
	f.healthy = &healthy
	return f
}
