package backfill

import (
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view.
func New() project.View { return view{} }

type view struct{}

func (view) Name() string { return chain.BackfillBucket }

func (view) Version() int { return version }

// Aggregates lists the aggregates whose history can be added to.
func (view) Aggregates() []string { return []string{events.AggregateAssignment} }

// Load checks a value that stands in the bucket; there is nothing to go on from. It gives errors for a value that is not an
// added one, or that stands under another's key.
func (view) Load(key string, value []byte) error {
	if !strings.HasPrefix(key, chain.Assignments.BackfillKey("")) {
		return errors.Newf("%s: key %s is of no kind whose history can be added to", chain.BackfillBucket, key)
	}
	a, err := chain.Decode[chain.Assignment](value)
	if err != nil {
		return errors.Wrapf(err, "%s: value of key %s", chain.BackfillBucket, key)
	}
	if own := chain.Assignments.BackfillKey(chain.Assignments.KeyOf(a)); own != key {
		return errors.Newf("%s: a value of %s stands under key %s", chain.BackfillBucket, own, key)
	}
	return nil
}

// Fold gives the value that a backfilled event leads to, and none for others. It gives errors for a backfilled event of a
// type whose history can't be added to (marked [es.ErrUnknownType] when the program does not know it at all).
func (view) Fold(e es.Event) ([]project.Value, error) {
	if !e.Backfill {
		return nil, nil
	}
	value, err := next(e)
	if err != nil {
		return nil, errors.Wrapf(err, "%s: event %d (%s of %s)", chain.BackfillBucket, e.Sequence, e.Type, e.Ref)
	}
	return []project.Value{value}, nil
}

func next(e es.Event) (project.Value, error) {
	data, ok := e.Data.(events.Assignment)
	if !ok {
		return project.Value{}, perkey.Unknown(e)
	}
	a, err := added(e, data)
	if err != nil {
		return project.Value{}, err
	}
	if own := chain.Assignments.KeyOf(a); own != e.Ref.Key {
		return project.Value{}, errors.Newf("it tells of %s", own)
	}
	value, err := chain.Encode(a)
	if err != nil {
		return project.Value{}, err
	}
	return project.Value{Key: chain.Assignments.BackfillKey(e.Ref.Key), Data: value}, nil
}

func added(e es.Event, data events.Assignment) (chain.Assignment, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.AssignmentAssigned:
		return told(data.Told, at), nil
	case events.AssignmentEnded:
		return chain.Assignment{Node: data.Node, Module: data.Module, Ended: at}, nil
	case events.AssignmentMovedIn, events.AssignmentMovedOut, events.AssignmentPended, events.AssignmentApplied,
		events.AssignmentApplyFailed, events.AssignmentHealthy, events.AssignmentUnhealthy, events.AssignmentRemoved,
		events.AssignmentRemoveFailed, events.AssignmentDrifted:
		return chain.Assignment{}, errors.New("only assigning and ending can be added to a history")
	}
	return chain.Assignment{}, perkey.Unknown(e)
}

func told(t events.Told, at time.Time) chain.Assignment {
	return chain.Assignment{
		Node: t.Node, Module: t.Module, Assigned: at, RequiredBy: t.RequiredBy, Provisioning: t.Provisioning,
		Build: t.Build, Reference: t.Reference, Commit: t.Commit, Rollout: t.Rollout, Since: at,
	}
}
