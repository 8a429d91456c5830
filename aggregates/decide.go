package aggregates

import (
	"github.com/cockroachdb/errors"

	"catenary/aggregates/actor"
	"catenary/aggregates/assignment"
	"catenary/aggregates/build"
	"catenary/aggregates/commit"
	"catenary/aggregates/freeze"
	"catenary/aggregates/lease"
	"catenary/aggregates/merge"
	"catenary/aggregates/module"
	"catenary/aggregates/node"
	"catenary/aggregates/projection"
	"catenary/aggregates/publication"
	"catenary/aggregates/rollout"
	"catenary/aggregates/strategy"
	"catenary/aggregates/track"
	"catenary/aggregates/writer"
	"catenary/es"
	"catenary/events"
)

// Decide gives the events a command leads to; its payload MUST have passed Validate. No events and no error mean that all is
// so already. It gives errors of type *[es.Refusal] for what a rule refuses; any other is a fault of the program. Deciding
// changes nothing.
func (w *World) Decide(c es.Command) ([]es.KeyedEvent, error) {
	if err := w.timely(c); err != nil {
		return nil, err
	}
	facts, err := w.decide(c)
	if err != nil {
		return nil, err
	}
	if err := w.recordable(c, facts); err != nil {
		return nil, err
	}
	w.date(c, facts)
	return facts, nil
}

func (w *World) decide(c es.Command) ([]es.KeyedEvent, error) {
	key := c.Ref.Key
	switch c.Ref.Aggregate {
	case events.AggregateModule:
		return module.Decide(w, w.modules.state(key), c)
	case events.AggregateNode:
		return node.Decide(w, w.nodes.state(key), c)
	case events.AggregateCommit:
		return commit.Decide(w.commits.state(key), c)
	case events.AggregateBuild:
		return build.Decide(w, w.builds.state(key), c)
	case events.AggregatePublication:
		return publication.Decide(w, w.publications.state(key), c)
	case events.AggregateAssignment:
		return assignment.Decide(w, w.assignments.state(key), c)
	case events.AggregateFreeze:
		return freeze.Decide(w.freezes.state(key), c)
	case events.AggregateLease:
		return lease.Decide(w, w.lease(key), c)
	case events.AggregateProjection:
		return projection.Decide(w.projections.state(key), c)
	case events.AggregateMerge:
		return merge.Decide(w, w.merges.state(key), c)
	case events.AggregateTrack:
		return track.Decide(w, w.tracks.state(key), c)
	case events.AggregateStrategy:
		return strategy.Decide(w, w.strategies.state(key), c)
	case events.AggregateRollout:
		return rollout.Decide(w, w.rollouts.state(key), c)
	case events.AggregateWriter:
		return writer.Decide(c)
	case events.AggregateActor:
		return actor.Decide(w.actors.state(key), c)
	}
	return nil, errors.AssertionFailedf("there is no aggregate %q", c.Ref.Aggregate)
}
