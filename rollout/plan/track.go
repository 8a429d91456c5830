package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/events"
)

// Asked says how a track is asked to plan.
type Asked struct {
	Now time.Time
	// By a person: a track that plans only when somebody asks does, and what came to nothing before is planned again.
	ByPerson bool
	Reason   string
}

// TrackPlan is the plan of a track, and the merges that it carries.
type TrackPlan struct {
	Plan
	Merges []chain.Merge
	// Placed are merges of which all that was built stands everywhere already. They are given beside the hold that says so.
	Placed []chain.Merge
}

// ForTrack gives the plan that a track has to make, or why it does not plan: one of the two. It gives the errors of [chain.List], of [chain.Get]
// and of [Make].
func ForTrack(ctx context.Context, r *chain.Reader, t chain.Track, a Asked) (TrackPlan, *events.Hold, error) {
	facts, err := Read(ctx, r)
	if err != nil {
		return TrackPlan{}, nil, err
	}
	if a.ByPerson && t.On == events.OnManual {
		t.On = events.OnPublication
	}
	of, ended, err := readTrack(ctx, r, t, facts)
	if err != nil {
		return TrackPlan{}, nil, err
	}
	due, hold := NextOf(t, of)
	if hold != nil {
		return TrackPlan{}, hold, nil
	}
	last, again := newest(ended)
	if again && !a.ByPerson && last.State != chain.RolloutFinished && equalTargets(last.Builds, due.Targets) {
		return TrackPlan{}, &events.Hold{Reason: events.HoldRollout, WaitsFor: fmt.Sprintf(
			"something newer, or somebody to trigger it: rollout %s carried the same and was %s", last.ID, last.State)}, nil
	}
	strategy, err := chain.Get(ctx, r, chain.Strategies, t.Strategy)
	if err != nil {
		return TrackPlan{}, nil, err
	}
	q := Request{ID: NewID(a.Now), StrategyName: t.Strategy, Track: t.Track, Targets: due.Targets, Now: a.Now, Reason: a.Reason}
	if q.Strategy, err = events.ParseStrategy(strategy.Value.Strategy); err != nil {
		return TrackPlan{}, nil, errors.Wrapf(err, "strategy %s", t.Strategy)
	}
	if q.Reason == "" {
		q.Reason = reasonOf(t, due)
	}
	var modules []string
	for _, target := range due.Targets {
		modules = append(modules, target.Module)
		if err := facts.Lookup(ctx, r, target.Version); err != nil {
			return TrackPlan{}, nil, err
		}
	}
	if facts, err = facts.WithCommits(ctx, r, modules...); err != nil {
		return TrackPlan{}, nil, err
	}
	if again && last.State != chain.RolloutFinished {
		if err := facts.TriedBefore(ctx, r, last.ID); err != nil {
			return TrackPlan{}, nil, err
		}
	}
	made, err := Make(facts, q)
	var missing *MissingError
	switch {
	case errors.As(err, &missing):
		return TrackPlan{}, &events.Hold{Reason: events.HoldBuild, Count: len(missing.Missing), WaitsFor: "a record of what it would run: " + err.Error()}, nil
	case err != nil:
		return TrackPlan{}, nil, err
	case len(made.Steps) == 0:
		return nothingOf(made, due)
	}
	return TrackPlan{Plan: made, Merges: due.Merges}, nil, nil
}

// nothingOf says why a plan has no steps.
func nothingOf(made Plan, due Due) (TrackPlan, *events.Hold, error) {
	if len(made.LeftOut) == 0 {
		return TrackPlan{Placed: due.Merges}, &events.Hold{Reason: events.HoldNothingNew, WaitsFor: "something that stands nowhere yet"}, nil
	}
	first := made.LeftOut[0]
	return TrackPlan{}, &events.Hold{
		Reason: first.Reason, Count: len(made.LeftOut), Until: first.Until,
		WaitsFor: fmt.Sprintf("what keeps %s, and %d in all, as they are: %s", first.StepName, len(made.LeftOut), first.Why),
	}, nil
}

func reasonOf(t chain.Track, due Due) string {
	switch n := len(due.Merges); n {
	case 0:
		return fmt.Sprintf("track %s: something newer is published", t.Track)
	case 1:
		return fmt.Sprintf("track %s: merge %s", t.Track, due.Merges[0].Commit)
	default:
		return fmt.Sprintf("track %s: %d merges, the newest %s", t.Track, n, due.Merges[n-1].Commit)
	}
}

// readTrack gives what a track decides on, and its rollouts that are final.
func readTrack(ctx context.Context, r *chain.Reader, t chain.Track, f Facts) (TrackFacts, []chain.Rollout, error) {
	of := TrackFacts{Modules: f.Modules, Told: f.Told}
	var ended []chain.Rollout
	err := each(ctx, r, chain.Rollouts, chain.Query{All: true}, func(o chain.Rollout) {
		switch {
		case o.Stands():
			of.Rollouts = append(of.Rollouts, o)
		case o.Track == t.Track:
			ended = append(ended, o)
		}
	})
	if err != nil {
		return of, nil, err
	}
	if t.On == events.OnMerge {
		if err := each(ctx, r, chain.Merges, chain.Query{}, func(m chain.Merge) { of.Merges = append(of.Merges, m) }); err != nil {
			return of, nil, err
		}
		if len(of.Merges) == 0 {
			return of, ended, nil
		}
		err := each(ctx, r, chain.Builds, chain.Query{All: true}, func(b chain.Build) {
			if b.Published != nil {
				of.Builds = append(of.Builds, b)
			}
		})
		return of, ended, err
	}
	err = each(ctx, r, chain.Publications, chain.Query{All: true}, func(p chain.Published) {
		if slices.Contains(t.Modules, p.Module) {
			of.Published = append(of.Published, p)
		}
	})
	return of, ended, err
}

// newest gives the rollout that ended last.
func newest(list []chain.Rollout) (chain.Rollout, bool) {
	if len(list) == 0 {
		return chain.Rollout{}, false
	}
	return slices.MaxFunc(list, func(a, b chain.Rollout) int { return a.Times.Ended.Compare(b.Times.Ended) }), true
}

func equalTargets(a, b []events.Target) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(t events.Target) bool {
		return !slices.ContainsFunc(b, func(o events.Target) bool { return t.Module == o.Module && t.Version.Same(o.Version) })
	})
}
