package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Asked says how a track is asked to plan.
type Asked struct {
	Now time.Time
	// By a person: a track that plans only when somebody asks does, and what came to nothing before is planned again.
	ByPerson bool
	Reason   string
	// ID is that of the rollout. Empty means a new one.
	ID string
}

// TrackPlan is the plan of a track, and the merges that it carries.
type TrackPlan struct {
	Plan
	Merges []chain.Merge
	// Placed are merges that have nothing to bring: all that was built of them stands everywhere already. They are given beside the hold that says so.
	Placed []chain.Merge
}

// Commands gives the commands that write the plan down, in order. The merges are taken before the plan is closed: a sender that dies on the way
// leaves half a plan, which is none, and never a rollout whose merges do not know of it.
func (p TrackPlan) Commands(confirm *int) ([]es.Payload, error) {
	parts, err := p.Plan.Commands(confirm)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	last := parts[len(parts)-1]
	if len(parts) == 1 && len(p.Merges) > 0 {
		first := last
		first.Digest, first.Count, first.Confirm = "", 0, nil
		last.Part, last.Head, last.Steps = 2, nil, nil
		parts = []commands.PlanRollout{first, last}
	}
	list := make([]es.Payload, 0, len(parts)+len(p.Merges))
	for _, part := range parts[:len(parts)-1] {
		list = append(list, part)
	}
	for _, m := range p.Merges {
		list = append(list, commands.TakeMerge{Repository: m.Repository, Branch: m.Branch, Commit: m.Commit, Rollout: p.ID})
	}
	return append(list, last), nil
}

// ForTrack gives the plan that a track has to make, or why it does not plan: one of the two. It gives the errors of [chain.List], of [chain.Get]
// and of [Make].
func ForTrack(ctx context.Context, r *chain.Reader, t chain.Track, a Asked) (TrackPlan, *events.Hold, error) {
	facts, err := Read(ctx, r)
	if err != nil {
		return TrackPlan{}, nil, err
	}
	of, err := readTrack(ctx, r, t, facts, a)
	if err != nil {
		return TrackPlan{}, nil, err
	}
	due, hold := NextOf(t, of)
	if hold != nil {
		return TrackPlan{Placed: due.Placed}, hold, nil
	}
	strategy, err := chain.Get(ctx, r, chain.Strategies, t.Strategy)
	if err != nil {
		return TrackPlan{}, nil, err
	}
	parsed, err := events.ParseStrategy(strategy.Value.Strategy)
	if err != nil {
		return TrackPlan{}, nil, errors.Wrapf(err, "strategy %s", t.Strategy)
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
	var before chain.WholeRollout
	if due.Again != "" {
		if before, err = r.Rollout(ctx, due.Again); err != nil {
			return TrackPlan{}, nil, err
		}
	}
	return Carry(facts, t, due, before, parsed, a)
}

// Carry gives the plan for what a track has due, or why nothing can be planned for it: one of the two. before is the rollout that the due names. It
// gives the errors of [Make].
func Carry(f Facts, t chain.Track, due Due, before chain.WholeRollout, strategy events.Strategy, a Asked) (TrackPlan, *events.Hold, error) {
	f.TriedIn(before)
	if a.ID == "" {
		a.ID = NewID(a.Now)
	}
	q := Request{ID: a.ID, Strategy: strategy, StrategyName: t.Strategy, Track: t.Track, Targets: due.Targets, Now: a.Now, Reason: a.Reason}
	if q.Reason == "" {
		q.Reason = reasonOf(t, due)
	}
	made, err := Make(f, q)
	var missing *MissingError
	switch {
	case errors.As(err, &missing):
		return TrackPlan{}, &events.Hold{Reason: events.HoldBuild, Count: len(missing.Missing), WaitsFor: "a record of what it would run: " + err.Error()}, nil
	case err != nil:
		return TrackPlan{}, nil, err
	case len(made.Steps) == 0:
		placed, hold := nothingOf(made, due)
		return placed, hold, nil
	case !a.ByPerson && leftBy(before, made.Steps):
		return TrackPlan{}, &events.Hold{Reason: events.HoldRollout, Count: len(made.Steps), WaitsFor: fmt.Sprintf(
			"something newer, or somebody to trigger it: rollout %s carried the same, and has %s without the rest", before.ID, before.State)}, nil
	}
	return TrackPlan{Plan: made, Merges: due.Merges}, nil, nil
}

// leftBy says whether a rollout has come to its end without all that steps change: their nodes were away and left out, or failed within the budget.
// Planning the same at once would come to the same, again and again.
func leftBy(before chain.WholeRollout, steps []events.PlannedStep) bool {
	left := map[Change]bool{}
	for _, s := range before.All {
		if !s.Refresh { // one that was not told anew may have stood at something else since
			left[Change{StepName: events.StepName{Node: s.Node, Module: s.Module}, To: to(s.After)}] = s.Outcome != events.StepDone
		}
	}
	return !slices.ContainsFunc(steps, func(s events.PlannedStep) bool {
		return !s.Refresh && !left[Change{StepName: s.StepName, To: to(s.After)}]
	})
}

// nothingOf says why a plan has no steps.
func nothingOf(made Plan, due Due) (TrackPlan, *events.Hold) {
	if len(made.LeftOut) == 0 {
		return TrackPlan{Placed: due.Merges}, &events.Hold{Reason: events.HoldNothingNew, WaitsFor: "something that stands nowhere yet"}
	}
	first := made.LeftOut[0]
	return TrackPlan{}, &events.Hold{
		Reason: first.Reason, Count: len(made.LeftOut), Until: first.Until,
		WaitsFor: fmt.Sprintf("what keeps %s, and %d in all, as they are: %s", first.StepName, len(made.LeftOut), first.Why),
	}
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

// readTrack gives what a track decides on.
func readTrack(ctx context.Context, r *chain.Reader, t chain.Track, f Facts, a Asked) (TrackFacts, error) {
	of := TrackFacts{Modules: f.Modules, Told: f.Told, Triggered: a.ByPerson}
	err := each(ctx, r, chain.Rollouts, chain.Query{All: true}, func(o chain.Rollout) {
		if o.Stands() || o.Track == t.Track {
			of.Rollouts = append(of.Rollouts, o)
		}
	})
	if err != nil {
		return of, err
	}
	if t.On == events.OnMerge {
		stand, waiting := map[string]bool{}, false
		for n, v := range f.Told {
			if slices.Contains(t.Modules, n.Module) {
				stand[v.Commit] = true
			}
		}
		err := each(ctx, r, chain.Merges, chain.Query{All: true}, func(m chain.Merge) {
			if waiting = waiting || m.Stands(); m.Stands() || stand[m.Commit] {
				of.Merges = append(of.Merges, m)
			}
		})
		if err != nil || !waiting {
			return of, err
		}
		err = each(ctx, r, chain.Builds, chain.Query{All: true}, func(b chain.Build) {
			if b.Published != nil {
				of.Builds = append(of.Builds, b)
			}
		})
		return of, err
	}
	err = each(ctx, r, chain.Publications, chain.Query{All: true}, func(p chain.Published) {
		if slices.Contains(t.Modules, p.Module) {
			of.Published = append(of.Published, p)
		}
	})
	return of, err
}

// carried says whether a rollout has carried all of some targets, and maybe others.
func carried(by, targets []events.Target) bool {
	return !slices.ContainsFunc(targets, func(t events.Target) bool {
		return !slices.ContainsFunc(by, func(o events.Target) bool { return t.Module == o.Module && t.Version.Same(o.Version) })
	})
}
