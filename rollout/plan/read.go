package plan

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"golang.org/x/sync/errgroup"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// Read gives what a plan needs of the chain: what stands, and the freezes. What is published and which commits there are is added by
// [Facts.Lookup] for what shall run. It gives the errors of [chain.List].
func Read(ctx context.Context, r *chain.Reader) (Facts, error) {
	f := Facts{
		Nodes: map[string]chain.Node{}, Modules: map[string]chain.Module{}, Told: map[events.StepName]events.Version{},
		Published: map[string]chain.Published{}, Tried: map[Change]int{},
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return each(ctx, r, chain.Nodes, chain.Query{All: true}, func(n chain.Node) { f.Nodes[n.Node] = n })
	})
	g.Go(func() error {
		return each(ctx, r, chain.Modules, chain.Query{All: true}, func(m chain.Module) { f.Modules[m.Name] = m })
	})
	g.Go(func() error {
		return each(ctx, r, chain.Assignments, chain.Query{}, func(a chain.Assignment) { f.Told[nameOf(a)] = versionOf(a) })
	})
	g.Go(func() error {
		return each(ctx, r, chain.Freezes, chain.Query{}, func(z chain.Freeze) { f.Freezes = append(f.Freezes, z) })
	})
	return f, g.Wait()
}

func each[T chain.Record](ctx context.Context, r *chain.Reader, kind chain.Kind[T], q chain.Query, take func(T)) error {
	page, err := chain.List(ctx, r, kind, q)
	if err != nil {
		return err
	}
	for _, e := range page.Entries {
		take(e.Value)
	}
	return nil
}

func nameOf(a chain.Assignment) events.StepName {
	return events.StepName{Node: a.Node, Module: a.Module}
}

func versionOf(a chain.Assignment) events.Version {
	return events.Version{Reference: a.Reference, Build: a.Build, Commit: a.Commit}
}

// Lookup adds what is recorded of what shall run. It gives the errors of [chain.Get].
func (f Facts) Lookup(ctx context.Context, r *chain.Reader, versions ...events.Version) error {
	for _, v := range versions {
		name := v.Reference.String()
		if _, known := f.Published[name]; known || v.IsZero() {
			continue
		}
		e, err := chain.Get(ctx, r, chain.Publications, chain.ReferenceNames(v.Reference)...)
		switch {
		case errors.Is(err, es.ErrNotFound):
		case err != nil:
			return err
		default:
			f.Published[name] = e.Value
		}
	}
	return nil
}

// WithCommits gives the facts with the commits of the modules' repositories. It gives the errors of [chain.List].
func (f Facts) WithCommits(ctx context.Context, r *chain.Reader, modules ...string) (Facts, error) {
	carried := map[string]bool{}
	for _, m := range modules {
		if repository := f.Modules[m].Repository; repository != "" {
			carried[repository] = true
		}
	}
	if len(carried) == 0 {
		return f, nil
	}
	err := each(ctx, r, chain.Commits, chain.Query{All: true}, func(c chain.Commit) {
		if carried[c.Repository] {
			f.Commits = append(f.Commits, c)
		}
	})
	return f, err
}

// ErrOtherModule means that a publication is not one of the module that shall come to it.
var ErrOtherModule = errors.New("a publication of another module")

// Target gives what a module shall be at, with the build and the commit that are recorded of it. It gives errors marked [ErrOtherModule], and those
// of [chain.Get].
func (f Facts) Target(ctx context.Context, r *chain.Reader, module string, ref events.Reference) (events.Target, error) {
	t := events.Target{Module: module, Version: events.Version{Reference: ref}}
	if err := f.Lookup(ctx, r, t.Version); err != nil {
		return t, err
	}
	if p, ok := f.Published[ref.String()]; ok {
		if p.Module != "" && p.Module != module {
			err := errors.Newf("%s is published of module %s, not of %s", ref, p.Module, module)
			return t, errors.WithHint(errors.Mark(err, ErrOtherModule), "name the module that it is of")
		}
		t.Build, t.Commit = p.Build, p.Commit
	}
	return t, nil
}

// ErrNothingBuilt means that no build of a commit has published anything.
var ErrNothingBuilt = errors.New("nothing is published of the commit")

// TargetsOf gives what builds of a commit have published, by module. It gives errors marked [ErrNothingBuilt], and those of
// [chain.List].
func TargetsOf(ctx context.Context, r *chain.Reader, repository, commit string) ([]events.Target, error) {
	newest := map[string]chain.Build{}
	err := each(ctx, r, chain.Builds, chain.Query{All: true}, func(b chain.Build) {
		if b.Repository != repository || b.Commit != commit || b.Published == nil {
			return
		}
		if before, ok := newest[b.Module]; !ok || b.At.After(before.At) {
			newest[b.Module] = b
		}
	})
	if err != nil {
		return nil, err
	}
	var targets []events.Target
	for module, b := range newest {
		targets = append(targets, events.Target{Module: module, Version: events.Version{Reference: *b.Published, Build: b.ID, Commit: b.Commit}})
	}
	if len(targets) == 0 {
		return nil, errors.WithHint(errors.Mark(errors.Newf("no build of commit %s of %s has published anything", commit, repository), ErrNothingBuilt),
			"see catenary get builds")
	}
	sortTargets(targets)
	return targets, nil
}

// Restored gives what stood at a moment. Node and module narrow it; empty means any. It gives the errors of [chain.ListAsOf].
func Restored(ctx context.Context, r *chain.Reader, at time.Time, node, module string) (Restore, error) {
	restore := Restore{At: at.UTC(), Told: map[events.StepName]events.Version{}, Scope: func(n events.StepName) bool {
		return (node == "" || n.Node == node) && (module == "" || n.Module == module)
	}}
	then, err := chain.ListAsOf(ctx, r, chain.Assignments, at, chain.Query{Node: node, Module: module})
	for _, past := range then {
		if past.Value.Stands() {
			restore.Told[nameOf(past.Value)] = versionOf(past.Value)
		}
	}
	return restore, err
}

// Versions lists what stood, each version once.
func (r Restore) Versions() []events.Version {
	seen := map[string]bool{}
	var list []events.Version
	for _, v := range r.Told {
		if name := v.Reference.String(); !seen[name] {
			seen[name] = true
			list = append(list, v)
		}
	}
	return list
}

// ErrNothingChanged means that a rollout has changed nothing that could be taken back, or that another takes it back already.
var ErrNothingChanged = errors.New("nothing to take back")

// Reverted gives what a rollout has told nodes, to be taken back, and a strategy for it: the rollout's own tiers, without what only slows
// a way out down. It gives errors marked [ErrNothingChanged], and those of [chain.Reader.Rollout].
func Reverted(ctx context.Context, r *chain.Reader, id string) ([]chain.Changed, events.Strategy, error) {
	whole, err := r.Rollout(ctx, id)
	if err != nil {
		return nil, events.Strategy{}, err
	}
	return Undone(whole)
}

// Undone does the same with a rollout that was read. It gives errors marked [ErrNothingChanged].
func Undone(whole chain.WholeRollout) ([]chain.Changed, events.Strategy, error) {
	if whole.RevertedBy != "" {
		err := errors.Newf("rollout %s is taken back by rollout %s already", whole.ID, whole.RevertedBy)
		return nil, events.Strategy{}, errors.WithHint(errors.Mark(err, ErrNothingChanged), "look at that one")
	}
	var undo []chain.Changed
	for _, s := range whole.All {
		if !s.Sent.IsZero() && !s.Refresh {
			undo = append(undo, chain.Changed{Node: s.Node, Module: s.Module, Before: s.Before, After: s.After})
		}
	}
	if len(undo) == 0 {
		return nil, events.Strategy{}, errors.WithHint(errors.Mark(errors.Newf("rollout %s is %s and has told no node anything", whole.ID, whole.State), ErrNothingChanged),
			"abort it if it shall not start")
	}
	return undo, wayBack(whole), nil
}

// wayBack is one tier for all of it: who goes back wants to be back. Its budget is everything, so that one node that fails does not keep
// the others where they must not stay.
func wayBack(whole chain.WholeRollout) events.Strategy {
	back := events.Tier{Name: "back", FailureBudget: events.PercentOf(100)}
	for _, t := range whole.Tiers {
		back.Timeout = longer(back.Timeout, t.Policy.Timeout)
		back.Retry = max(back.Retry, t.Policy.Retry)
	}
	return events.Strategy{Description: "the way back from rollout " + whole.ID, Tiers: []events.Tier{back}}
}

// longer gives the longer of two spans that were checked; an empty one is none.
func longer(a, b string) string {
	one, err := time.ParseDuration(a)
	if err != nil {
		return b
	}
	if other, err := time.ParseDuration(b); err == nil && other > one {
		return b
	}
	return a
}

// TriedBefore adds how often the same changes have failed in rollouts before: a new plan does not forget them. It looks at the steps of the
// given rollouts, and gives the errors of [chain.Reader.Rollout].
func (f Facts) TriedBefore(ctx context.Context, r *chain.Reader, rollouts ...string) error {
	for _, id := range rollouts {
		whole, err := r.Rollout(ctx, id)
		if err != nil {
			return err
		}
		f.TriedIn(whole)
	}
	return nil
}

// TriedIn adds how often changes have failed in a rollout that was read.
func (f Facts) TriedIn(whole chain.WholeRollout) {
	for _, s := range whole.All {
		if s.Tried > 0 && s.Outcome != events.StepDone {
			f.Tried[Change{StepName: events.StepName{Node: s.Node, Module: s.Module}, To: to(s.After)}] = s.Tried
		}
	}
}
