package store

import (
	"bytes"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/events"
)

// Kinds of assignments in the table key: what a node was told, and what it reported.
const (
	kindTold = "assignment"
	kindRan  = "observation"
)

// States of what was told.
const (
	stateStands  = "stands"
	stateEnded   = "ended"
	statePending = "pending"
)

// toldKind folds what nodes are told to run.
type toldKind struct{}

func (toldKind) name() string { return kindTold }

func (toldKind) aggregates() []string { return []string{events.AggregateAssignment} }

func (toldKind) fold(e es.Event, before func(string) (*fact, error)) ([]change, error) {
	data, ok := e.Data.(events.Assignment)
	if !ok {
		return nil, unknown(e)
	}
	var told events.Told
	state := stateStands
	switch data := data.(type) {
	case events.AssignmentAssigned:
		told = data.Told
	case events.AssignmentMovedIn:
		told = data.Told
	case events.AssignmentPended:
		told, state = data.Told, statePending
	case events.AssignmentEnded:
		return ended(e, data.Node, data.Module), nil
	case events.AssignmentMovedOut:
		return ended(e, data.Node, data.Module), nil
	case events.AssignmentApplied, events.AssignmentApplyFailed, events.AssignmentHealthy, events.AssignmentUnhealthy,
		events.AssignmentRemoved, events.AssignmentRemoveFailed, events.AssignmentDrifted:
		return nil, nil
	default:
		return nil, unknown(e)
	}
	stood, err := before(e.Ref.Key)
	if err != nil {
		return nil, err
	}
	f, err := toldFact(told, state, instantOf(e.Effective), stood)
	if err != nil {
		return nil, err
	}
	return []change{{kind: kindTold, key: e.Ref.Key, node: told.Node, module: told.Module, fact: f}}, nil
}

// toldFact gives what was told. The module came to the node now, unless it stood there already; what it is told is told since
// now, unless it is told just the same for other modules' sake.
func toldFact(t events.Told, state string, at instant, stood *fact) (*fact, error) {
	requiredBy, err := list(t.RequiredBy)
	if err != nil {
		return nil, err
	}
	f := &fact{
		stands: state == stateStands, state: state, reference: t.Reference, build: t.Build, commit: t.Commit, rollout: t.Rollout,
		requiredBy: requiredBy, assigned: at, since: at, value: t.Provisioning,
	}
	if f.stands && stood != nil && stood.stands {
		f.assigned = stood.assigned
		if f.reference.Equal(stood.reference) && f.build == stood.build && f.commit == stood.commit && f.rollout == stood.rollout &&
			bytes.Equal(f.value, stood.value) {
			f.since = stood.since
		}
	}
	return f, nil
}

func ended(e es.Event, node, module string) []change {
	f := &fact{state: stateEnded, since: instantOf(e.Effective)}
	return []change{{kind: kindTold, key: e.Ref.Key, node: node, module: module, fact: f}}
}

// unknown is the error for event data that a kind has no case for.
func unknown(e es.Event) error {
	return errors.Mark(errors.Newf("event %d (%s of %s): its data (%T) is none that this program can fold", e.Sequence, e.Type, e.Ref, e.Data), es.ErrUnknownType)
}
