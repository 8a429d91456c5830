package aggregates

import (
	"cmp"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/actor"
	"catenary/aggregates/assignment"
	"catenary/aggregates/build"
	"catenary/aggregates/commit"
	"catenary/aggregates/freeze"
	"catenary/aggregates/lease"
	"catenary/aggregates/module"
	"catenary/aggregates/node"
	"catenary/aggregates/projection"
	"catenary/aggregates/publication"
	"catenary/aggregates/strategy"
	"catenary/aggregates/writer"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Apply folds an event. It gives errors for one that the world does not understand or that is not the next of its instance:
// nothing may be decided on the world after that.
func (w *World) Apply(e es.Event) error {
	if err := w.fold(e); err != nil {
		return errors.Wrapf(err, "event %d of type %s on %s", e.Sequence, e.Type, e.Ref)
	}
	return nil
}

func (w *World) fold(e es.Event) error {
	switch fact := e.Data.(type) {
	case events.Module:
		return w.foldModule(e, fact)
	case events.Node:
		_, _, err := advance(w.nodes, e, events.AggregateNode, func(s node.State) (node.State, error) { return node.Evolve(s, fact), nil })
		return err
	case events.Commit:
		_, _, err := advance(w.commits, e, events.AggregateCommit, func(s commit.State) (commit.State, error) { return commit.Evolve(s, fact), nil })
		return err
	case events.Build:
		return w.foldBuild(e, fact)
	case events.Publication:
		return w.foldPublication(e, fact)
	case events.Assignment:
		return w.foldAssignment(e, fact)
	case events.Freeze:
		_, _, err := advance(w.freezes, e, events.AggregateFreeze, func(s freeze.State) (freeze.State, error) { return freeze.Evolve(s, fact), nil })
		return err
	case events.Lease:
		return w.foldLease(e, fact)
	case events.Projection:
		_, _, err := advance(w.projections, e, events.AggregateProjection, func(s projection.State) (projection.State, error) { return projection.Evolve(s, fact), nil })
		return err
	case events.Merge:
		return w.foldMerge(e, fact)
	case events.Track:
		return w.foldTrack(e, fact)
	case events.StrategyFact:
		_, _, err := advance(w.strategies, e, events.AggregateStrategy, func(s strategy.State) (strategy.State, error) { return strategy.Evolve(s, fact), nil })
		return err
	case events.Rollout:
		return w.foldRollout(e, fact)
	case events.Writer:
		_, _, err := advance(w.writers, e, events.AggregateWriter, func(s writer.State) (writer.State, error) { return writer.Evolve(s, fact, e.Recorded), nil })
		return err
	case events.Actor:
		_, _, err := advance(w.actors, e, events.AggregateActor, func(s actor.State) (actor.State, error) { return actor.Evolve(s, fact), nil })
		return err
	}
	return errors.Newf("data of type %T has no place in the world", e.Data)
}

// advance takes an event into its instance and gives the instance's state before and after.
func advance[S any](t instances[S], e es.Event, aggregate string, evolve func(S) (S, error)) (before, after S, err error) {
	in, known := t.Get(e.Ref.Key)
	switch {
	case e.Ref.Aggregate != aggregate:
		return before, after, errors.Newf("a fact about a %s can't belong to a %s", aggregate, e.Ref.Aggregate)
	case e.Version != in.version+1:
		return before, after, errors.Newf("version %d can't follow version %d", e.Version, in.version)
	}
	key := e.Ref.Key
	if !known {
		key = strings.Clone(key) // it shares its memory with the event's subject
	}
	before, after = in.state, in.state
	in.version = e.Version
	if !e.Backfill {
		if after, err = evolve(before); err != nil {
			return before, before, err
		}
		in.state, in.latest = after, max(in.latest, e.Effective.UnixNano())
	}
	t.Put(key, in)
	return before, after, nil
}

func (w *World) foldModule(e es.Event, fact events.Module) error {
	before, after, err := advance(w.modules, e, events.AggregateModule, func(s module.State) (module.State, error) { return module.Evolve(s, fact), nil })
	if err != nil || len(before.Requires) == 0 && len(after.Requires) == 0 {
		return err
	}
	name, err := es.UnescapeToken(e.Ref.Key)
	if err != nil {
		return err
	}
	for _, r := range before.Requires {
		w.requirers.Remove(r, name)
	}
	w.require(name, after.Requires)
	return nil
}

// require keeps what a module requires.
func (w *World) require(name string, requires []string) {
	name = w.share(name)
	for _, r := range requires {
		w.requirers.Add(w.share(r), name)
	}
}

func (w *World) foldBuild(e es.Event, fact events.Build) error {
	size := w.buildBytes(fact)
	before, after, err := advance(w.builds, e, events.AggregateBuild, func(s build.State) (build.State, error) { return build.Evolve(s, fact, size), nil })
	if err != nil || before.ReuseKey == "" || before.Status == build.Succeeded || after.Status != build.Succeeded {
		return err
	}
	if _, taken := w.reusable.Get(before.ReuseKey); taken {
		return nil
	}
	id, err := es.UnescapeToken(e.Ref.Key)
	if err == nil {
		w.reusable.Put(before.ReuseKey, id)
	}
	return err
}

func (w *World) foldPublication(e es.Event, fact events.Publication) error {
	size := w.measure.JSON(fact)
	before, after, err := advance(w.publications, e, events.AggregatePublication, func(s publication.State) (publication.State, error) {
		return publication.Evolve(s, fact, cmp.Or(e.Command.OnBehalfOf, e.Command.Actor), size), nil
	})
	if err == nil && !before.Recorded && after.Recorded && after.Module != "" {
		w.published.Insert(w.share(after.Module), e.Effective.UnixNano(), e.Sequence, strings.Clone(e.Ref.Key))
	}
	return err
}

func (w *World) foldAssignment(e es.Event, fact events.Assignment) error {
	size := w.measure.JSON(fact)
	before, after, err := advance(w.assignments, e, events.AggregateAssignment, func(s assignment.State) (assignment.State, error) {
		return assignment.Evolve(s, fact, e.Sequence, size), nil
	})
	if err != nil || before.Status == after.Status {
		return err
	}
	return w.place(e.Ref.Key, after)
}

// place keeps where an assignment stands or waits.
func (w *World) place(key string, s assignment.State) error {
	names, err := es.SplitKey(key)
	if err != nil || len(names) != 2 {
		return errors.Newf("%q is no key of an assignment", key)
	}
	nodeName, moduleName := w.share(names[0]), w.share(names[1])
	if s.Stands() {
		w.standingOf.Add(moduleName, nodeName)
	} else {
		w.standingOf.Remove(moduleName, nodeName)
	}
	if s.Stands() || s.Status == assignment.Pending {
		w.assignedOn.Add(nodeName, moduleName)
	} else {
		w.assignedOn.Remove(nodeName, moduleName)
	}
	return nil
}

func (w *World) foldLease(e es.Event, fact events.Lease) error {
	before, after, err := advance(w.leases, e, events.AggregateLease, func(s lease.State) (lease.State, error) { return lease.Evolve(s, fact, e.Sequence, e.Recorded) })
	if err != nil {
		return err
	}
	if before.Status == lease.Held {
		w.fences.Delete(before.Fence)
	}
	if after.Status == lease.Held {
		w.fences.Put(after.Fence, strings.Clone(e.Ref.Key))
	}
	if _, ok := w.renewed.Get(e.Ref.Key); ok && before.Fence != after.Fence {
		w.renewed.Delete(e.Ref.Key)
	}
	return nil
}

// Note keeps that a lease was renewed. All other commands without events say nothing that is not known.
func (w *World) Note(c es.Command) {
	var holder string
	switch p := c.Data.(type) {
	case commands.RenewLease:
		holder = p.Holder
	case commands.TakeLease:
		holder = p.Holder
	default:
		return
	}
	before := w.lease(c.Ref.Key)
	if after := before.Renew(holder, c.Received); after != before {
		w.renewed.Put(c.Ref.Key, after.Renewed)
	}
}
