package aggregates

import (
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/freeze"
	"catenary/aggregates/lease"
	"catenary/aggregates/merge"
	"catenary/aggregates/rollout"
	"catenary/aggregates/snapshot"
	"catenary/aggregates/strategy"
	"catenary/aggregates/track"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Rollout gives the state of a rollout.
func (w *World) Rollout(id string) rollout.State { return w.rollouts.state(es.Key(id)) }

// Steps gives the steps of a rollout: all while it is not final, and those that are pending after that.
func (w *World) Steps(id string) rollout.Steps { return stepView{w, es.Key(id)} }

// Track gives the state of a track.
func (w *World) Track(name string) track.State { return w.tracks.state(es.Key(name)) }

// TrackOf gives the track that a module is on.
func (w *World) TrackOf(module string) (track string, ok bool) { return w.trackOf.Get(module) }

// Strategy gives the state of a strategy.
func (w *World) Strategy(name string) strategy.State { return w.strategies.state(es.Key(name)) }

// TracksOf gives the tracks, in order, that name a strategy.
func (w *World) TracksOf(strategy string) []string { return w.tracksOf.Members(strategy) }

// Merge gives the state of a merge.
func (w *World) Merge(repository, branch, commit string) merge.State {
	return w.merges.state(es.Key(repository, branch, commit))
}

// MergesOf gives the merges that belong to a rollout.
func (w *World) MergesOf(rollout string) []merge.State {
	keys := w.mergesOf.Members(rollout)
	states := make([]merge.State, len(keys))
	for i, key := range keys {
		states[i] = w.merges.state(key)
	}
	return states
}

// EngineFence gives the fence of the process that walks rollouts, if there is one.
func (w *World) EngineFence() (fence uint64, held bool) {
	s := w.leases.state(es.Key(commands.EngineLease))
	return s.Fence, s.Status == lease.Held
}

// mostThaws bounds how often it is looked for the end of freezes that take over from one another.
const mostThaws = 64

// Thaws gives the first moment from then on at which no freeze holds for a place; zero when that depends on somebody lifting one, or
// lies behind more of them than are looked at. It gives an error for a time zone that is not known here.
func (w *World) Thaws(p freeze.Place, at time.Time) (time.Time, error) {
	for range mostThaws {
		opens, held := at, false
		for key, in := range w.freezes.All() {
			holds, err := in.state.Holds(p, at, w.zone)
			if err != nil {
				return time.Time{}, errors.Wrapf(err, "freeze %s", key)
			}
			if !holds {
				continue
			}
			held = true
			until, ends, err := in.state.Opens(at, w.zone)
			if err != nil || !ends {
				return time.Time{}, err
			}
			if until.After(opens) {
				opens = until
			}
		}
		if !held {
			return at, nil
		}
		at = opens
	}
	return time.Time{}, nil
}

// stepView is the steps of one rollout.
type stepView struct {
	world *World
	// key is the rollout's.
	key string
}

var _ rollout.StepTable = stepView{}

// Step gives a step.
func (v stepView) Step(n events.StepName) (rollout.Step, bool) {
	return v.world.steps.Get(rollout.StepKey(v.key, n))
}

// All gives every step, in no order.
func (v stepView) All(visit func(events.StepName, rollout.Step)) {
	v.world.stepsOf.Each(v.key, func(key string) {
		step, ok := v.world.steps.Get(key)
		if names, err := es.SplitKey(key); ok && err == nil && len(names) == stepKeyNames {
			visit(events.StepName{Node: names[1], Module: names[2]}, step)
		}
	})
}

// stepKeyNames is how many names the key of a step has: its rollout, its node and its module.
const stepKeyNames = 3

// Put keeps a step.
func (v stepView) Put(n events.StepName, s rollout.Step) {
	key := rollout.StepKey(v.key, n)
	v.world.steps.Put(key, s)
	v.world.stepsOf.Add(v.key, key)
}

// Drop forgets a step.
func (v stepView) Drop(n events.StepName) {
	key := rollout.StepKey(v.key, n)
	v.world.steps.Delete(key)
	v.world.stepsOf.Remove(v.key, key)
}

func (w *World) foldRollout(e es.Event, fact events.Rollout) error {
	steps := stepView{w, strings.Clone(e.Ref.Key)}
	size := w.measure.JSON(fact)
	_, _, err := advance(w.rollouts, e, events.AggregateRollout, func(s rollout.State) (rollout.State, error) {
		return rollout.Evolve(s, fact, e.Recorded, size, steps)
	})
	return err
}

func (w *World) foldMerge(e es.Event, fact events.Merge) error {
	before, after, err := advance(w.merges, e, events.AggregateMerge, func(s merge.State) (merge.State, error) { return merge.Evolve(s, fact), nil })
	if err != nil || before.Rollout == after.Rollout {
		return err
	}
	key := strings.Clone(e.Ref.Key)
	if before.Rollout != "" {
		w.mergesOf.Remove(before.Rollout, key)
	}
	return w.indexMerge(key, after)
}

func (w *World) indexMerge(key string, s merge.State) error {
	if s.Rollout != "" {
		w.mergesOf.Add(s.Rollout, key)
	}
	return nil
}

func (w *World) foldTrack(e es.Event, fact events.Track) error {
	before, after, err := advance(w.tracks, e, events.AggregateTrack, func(s track.State) (track.State, error) { return track.Evolve(s, fact), nil })
	if err != nil {
		return err
	}
	for _, m := range before.Modules {
		w.trackOf.Delete(m)
	}
	if before.Strategy != "" {
		name, err := es.UnescapeToken(e.Ref.Key)
		if err != nil {
			return err
		}
		w.tracksOf.Remove(before.Strategy, name)
	}
	return w.indexTrack(e.Ref.Key, after)
}

func (w *World) indexTrack(key string, s track.State) error {
	if s.Status != track.Declared {
		return nil
	}
	name, err := es.UnescapeToken(key)
	if err != nil {
		return err
	}
	name = strings.Clone(name)
	for _, m := range s.Modules {
		w.trackOf.Put(m, name)
	}
	w.tracksOf.Add(s.Strategy, name)
	return nil
}

func (w *World) writeSteps(s *snapshot.Writer) {
	keys := sorted(w.steps.All(), w.steps.Len())
	s.Number(uint64(len(keys)))
	s.EndRow()
	for _, key := range keys {
		step, _ := w.steps.Get(key)
		s.Name(key)
		step.Snapshot(s)
		s.EndRow()
	}
}

func (w *World) readSteps(s *snapshot.Reader) {
	s.Rows(w.steps.Reserve, func() {
		key := s.Name()
		step := rollout.RestoredStep(s)
		of, _, ok := strings.Cut(key, ".")
		if !ok {
			s.Fail(errors.Newf("%q is no key of a step", key))
			return
		}
		w.steps.Put(key, step)
		w.stepsOf.Add(of, key)
	})
}
