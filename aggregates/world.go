package aggregates

import (
	"strings"
	"time"

	"catenary/aggregates/actor"
	"catenary/aggregates/assignment"
	"catenary/aggregates/build"
	"catenary/aggregates/commit"
	"catenary/aggregates/content"
	"catenary/aggregates/freeze"
	"catenary/aggregates/journal"
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

// World is the fold of the whole stream: every instance's state, and the indexes that rules need. One goroutine uses it at
// a time. It is an [es.Decider].
type World struct {
	cfg     Config
	log     *journal.Log
	measure *content.Measure
	// names holds each node's and module's name once; the indexes share them.
	names map[string]string
	// zones keeps the time zones that were looked up.
	zones map[string]*time.Location

	modules      instances[module.State]
	nodes        instances[node.State]
	commits      instances[commit.State]
	builds       instances[build.State]
	publications instances[publication.State]
	assignments  instances[assignment.State]
	freezes      instances[freeze.State]
	leases       instances[lease.State]
	projections  instances[projection.State]
	merges       instances[merge.State]
	tracks       instances[track.State]
	strategies   instances[strategy.State]
	rollouts     instances[rollout.State]
	writers      instances[writer.State]
	actors       instances[actor.State]

	// steps holds the steps of rollouts that are not final, and those that are pending yet, by [rollout.StepKey]; stepsOf gives
	// the names of a rollout's steps by its key.
	steps   *journal.Table[string, rollout.Step]
	stepsOf *journal.Index[string, string]
	// mergesOf gives the keys of the merges that belong to a rollout.
	mergesOf *journal.Index[string, string]
	// trackOf gives the track that a module is on, tracksOf the tracks that name a strategy.
	trackOf  *journal.Table[string, string]
	tracksOf *journal.Index[string, string]
	// requirers gives the registered modules that require a module.
	requirers *journal.Index[string, string]
	// assignedOn gives the modules that stand or wait on a node, standingOf the nodes a module stands on.
	assignedOn *journal.Index[string, string]
	standingOf *journal.Index[string, string]
	// published gives the keys of a module's publications by the time they came to be.
	published *journal.Timeline[string, string]
	// reusable gives the first build that succeeded with a reuse key.
	reusable *journal.Table[string, string]
	// fences holds the present leases' fences with the keys of their leases.
	fences *journal.Table[uint64, string]
	// renewed is when present leases were last renewed without an event, in nanoseconds since 1970. It is no part of the fold.
	renewed *journal.Table[string, int64]
}

// instance is one aggregate instance.
type instance[S any] struct {
	// version counts all events, latest is the newest effective time of those that are no backfills, in nanoseconds since
	// 1970.
	version uint64
	latest  int64
	state   S
}

// instances holds an aggregate's instances by key.
type instances[S any] struct {
	*journal.Table[string, instance[S]]
}

func newInstances[S any](log *journal.Log) instances[S] {
	return instances[S]{journal.NewTable[string, instance[S]](log)}
}

// state gives the state of an instance; one without events has the zero state.
func (t instances[S]) state(key string) S {
	in, _ := t.Get(key)
	return in.state
}

func (t instances[S]) head(key string) (version uint64, latest int64) {
	in, _ := t.Get(key)
	return in.version, in.latest
}

// NewWorld returns the world before the first event. It gives an error for a configuration that makes no sense.
func NewWorld(cfg Config) (*World, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	log := &journal.Log{}
	return &World{
		cfg: cfg, log: log, measure: cfg.Measure, names: map[string]string{}, zones: map[string]*time.Location{},

		modules:      newInstances[module.State](log),
		nodes:        newInstances[node.State](log),
		commits:      newInstances[commit.State](log),
		builds:       newInstances[build.State](log),
		publications: newInstances[publication.State](log),
		assignments:  newInstances[assignment.State](log),
		freezes:      newInstances[freeze.State](log),
		leases:       newInstances[lease.State](log),
		projections:  newInstances[projection.State](log),
		merges:       newInstances[merge.State](log),
		tracks:       newInstances[track.State](log),
		strategies:   newInstances[strategy.State](log),
		rollouts:     newInstances[rollout.State](log),
		writers:      newInstances[writer.State](log),
		actors:       newInstances[actor.State](log),

		steps:    journal.NewTable[string, rollout.Step](log),
		stepsOf:  journal.NewIndex[string, string](log),
		mergesOf: journal.NewIndex[string, string](log),
		trackOf:  journal.NewTable[string, string](log),
		tracksOf: journal.NewIndex[string, string](log),

		requirers:  journal.NewIndex[string, string](log),
		assignedOn: journal.NewIndex[string, string](log),
		standingOf: journal.NewIndex[string, string](log),
		published:  journal.NewTimeline[string, string](log),
		reusable:   journal.NewTable[string, string](log),
		fences:     journal.NewTable[uint64, string](log),
		renewed:    journal.NewTable[string, int64](log),
	}, nil
}

// Mark gives a point to go back to.
func (w *World) Mark() es.Mark { return w.log.Mark() }

// Rollback undoes all that was applied and noted since the mark. The mark can be gone back to again.
func (w *World) Rollback(m es.Mark) { w.log.Rollback(m) }

// Release forgets the marks up to and including this one.
func (w *World) Release(m es.Mark) { w.log.Release(m) }

// Version is the number of events of the instance, backfills included.
func (w *World) Version(ref es.Ref) uint64 {
	version, _ := w.head(ref)
	return version
}

// head gives an instance's version and newest effective time.
func (w *World) head(ref es.Ref) (version uint64, latest int64) {
	switch ref.Aggregate {
	case events.AggregateModule:
		return w.modules.head(ref.Key)
	case events.AggregateNode:
		return w.nodes.head(ref.Key)
	case events.AggregateCommit:
		return w.commits.head(ref.Key)
	case events.AggregateBuild:
		return w.builds.head(ref.Key)
	case events.AggregatePublication:
		return w.publications.head(ref.Key)
	case events.AggregateAssignment:
		return w.assignments.head(ref.Key)
	case events.AggregateFreeze:
		return w.freezes.head(ref.Key)
	case events.AggregateLease:
		return w.leases.head(ref.Key)
	case events.AggregateProjection:
		return w.projections.head(ref.Key)
	case events.AggregateMerge:
		return w.merges.head(ref.Key)
	case events.AggregateTrack:
		return w.tracks.head(ref.Key)
	case events.AggregateStrategy:
		return w.strategies.head(ref.Key)
	case events.AggregateRollout:
		return w.rollouts.head(ref.Key)
	case events.AggregateWriter:
		return w.writers.head(ref.Key)
	case events.AggregateActor:
		return w.actors.head(ref.Key)
	}
	return 0, 0
}

// share gives a name that the indexes hold already, so that it is kept once however often it comes in.
func (w *World) share(name string) string {
	if shared, ok := w.names[name]; ok {
		return shared
	}
	name = strings.Clone(name)
	w.names[name] = name
	return name
}
