package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"catenary/chain"
	"catenary/events"
)

// TrackFacts is what a track decides on.
type TrackFacts struct {
	Modules map[string]chain.Module
	Told    map[events.StepName]events.Version
	// Merges are those that wait, and those whose commit stands somewhere; Builds those that have published something, Published the publications
	// of the track's modules.
	Merges    []chain.Merge
	Builds    []chain.Build
	Published []chain.Published
	// Rollouts are those that are not final, and all of the track's own.
	Rollouts []chain.Rollout
	// Triggered says that a person asks: what came to nothing before is planned again, also by a track that plans only then.
	Triggered bool
}

// Due is what a track has to plan now.
type Due struct {
	Targets []events.Target
	// Merges are those that the rollout carries; it takes them.
	Merges []chain.Merge
	// Placed are merges that have nothing to bring. They are given beside the hold that says so.
	Placed []chain.Merge
	// Again is the rollout before, if that came to nothing or carried all of this: what became of its steps counts.
	Again string
}

// NextOf gives what a track has to plan, or why it does not plan: one of the two.
//
// Merges are batched: all that wait go together while none of them goes alone, the newest of each repository standing for those
// before it. They wait while a rollout of the track, or another one that moves its modules, is under way, and until builds of that commit have published.
func NextOf(t chain.Track, f TrackFacts) (Due, *events.Hold) {
	hold := func(reason, format string, args ...any) (Due, *events.Hold) {
		return Due{}, &events.Hold{Reason: reason, WaitsFor: fmt.Sprintf(format, args...)}
	}
	for _, r := range f.Rollouts {
		if r.Stands() && (r.Track == t.Track || inTheWay(r, t)) {
			return hold(events.HoldRollout, "rollout %s to come to its end: it is %s", r.ID, r.State)
		}
	}
	var due Due
	var held *events.Hold
	switch {
	case t.On == events.OnMerge:
		due, held = f.merged(t)
	case t.On == events.OnPublication, f.Triggered:
		due, held = f.published(t)
	default:
		return hold(events.HoldManual, "somebody to plan")
	}
	if held != nil {
		return due, held
	}
	last, came := f.last(t)
	if !came {
		return due, nil
	}
	same, finished := carried(last.Builds, due.Targets), last.State == chain.RolloutFinished
	if same && !finished && !f.Triggered {
		return hold(events.HoldRollout, "something newer, or somebody to trigger it: rollout %s carried the same and was %s", last.ID, last.State)
	}
	if same || !finished {
		due.Again = last.ID
	}
	return due, nil
}

// last gives the rollout of the track that ended last. One whose plan was never closed has come to nothing by itself: it says nothing of what
// it was to carry.
func (f TrackFacts) last(t chain.Track) (last chain.Rollout, found bool) {
	for _, r := range f.Rollouts {
		if r.Track == t.Track && !r.Stands() && r.Digest != "" && (!found || r.Times.Ended.After(last.Times.Ended)) {
			last, found = r, true
		}
	}
	return last, found
}

// inTheWay says whether a rollout that is none of the track's moves one of its modules: two at once would each find that the other has moved on.
func inTheWay(r chain.Rollout, t chain.Track) bool {
	if r.State != chain.RolloutRunning && r.State != chain.RolloutPaused && r.Reverts == "" {
		return false // it may never be started
	}
	return slices.ContainsFunc(r.Builds, func(b events.Target) bool { return slices.Contains(t.Modules, b.Module) })
}

// published gives the newest publication of each module of the track, where something older stands.
func (f TrackFacts) published(t chain.Track) (Due, *events.Hold) {
	var due Due
	for _, module := range t.Modules {
		newest, ok := f.newest(module)
		if !ok {
			continue
		}
		target := events.Target{Module: module, Version: events.Version{Reference: newest.Reference, Build: newest.Build, Commit: newest.Commit}}
		if f.differs(target) {
			due.Targets = append(due.Targets, target)
		}
	}
	if len(due.Targets) == 0 {
		return Due{}, &events.Hold{Reason: events.HoldNothingNew, WaitsFor: "a publication that stands nowhere yet"}
	}
	due.Targets = f.together(due.Targets)
	return due, nil
}

// together leaves one commit of each repository, the one that something was published of last: a rollout carries no two. The rest goes next.
func (f TrackFacts) together(targets []events.Target) []events.Target {
	newest := map[string]chain.Published{}
	of := func(t events.Target) chain.Published {
		at := slices.IndexFunc(f.Published, func(p chain.Published) bool { return p.Module == t.Module && p.Reference.Equal(t.Reference) })
		return f.Published[at]
	}
	for _, t := range targets {
		repository := f.Modules[t.Module].Repository
		if p := of(t); t.Commit != "" && repository != "" && !p.At.Before(newest[repository].At) {
			newest[repository] = p
		}
	}
	return slices.DeleteFunc(targets, func(t events.Target) bool {
		last, fixed := newest[f.Modules[t.Module].Repository]
		return fixed && t.Commit != "" && t.Commit != last.Commit
	})
}

// newest gives the newest publication of a module that is not vetoed.
func (f TrackFacts) newest(module string) (chain.Published, bool) {
	var newest chain.Published
	found := false
	for _, p := range f.Published {
		if p.Module == module && p.Vetoed == nil && (!found || p.At.After(newest.At)) {
			newest, found = p, true
		}
	}
	return newest, found
}

// differs says whether the module stands somewhere at something else.
func (f TrackFacts) differs(t events.Target) bool {
	for n, v := range f.Told {
		if n.Module == t.Module && !v.Same(t.Version) {
			return true
		}
	}
	return false
}

// merged gives the next batch of merges, with what was built of it.
func (f TrackFacts) merged(t chain.Track) (Due, *events.Hold) {
	batch, behind := f.ahead(f.batch(t), t)
	if len(batch) == 0 && len(behind) > 0 {
		return Due{Placed: behind}, &events.Hold{Reason: events.HoldNothingNew, WaitsFor: "a merge that is newer than what stands"}
	}
	if len(batch) == 0 {
		return Due{}, &events.Hold{Reason: events.HoldNothingNew, WaitsFor: "a merge"}
	}
	due := Due{Merges: batch}
	newest := map[string]chain.Merge{}
	for _, m := range batch { // oldest first: the last one stands
		newest[m.Repository] = m
	}
	var lacking []string
	for _, module := range t.Modules {
		m, carried := newest[f.Modules[module].Repository]
		if !carried {
			continue
		}
		if b, ok := f.built(module, m); ok {
			due.Targets = append(due.Targets, events.Target{Module: module, Version: events.Version{Reference: *b.Published, Build: b.ID, Commit: b.Commit}})
		} else {
			lacking = append(lacking, fmt.Sprintf("%s at %s", module, m.Commit))
		}
	}
	if len(lacking) > 0 {
		return Due{}, &events.Hold{Reason: events.HoldBuild, Count: len(lacking), WaitsFor: "a build that publishes " + strings.Join(lacking, ", ")}
	}
	return due, nil
}

// batch gives the merges of the track that go together, oldest first: one that goes alone, or all before the next that does.
func (f TrackFacts) batch(t chain.Track) []chain.Merge {
	carried := map[string]bool{}
	for _, module := range t.Modules {
		carried[f.Modules[module].Repository] = true
	}
	var waiting []chain.Merge
	for _, m := range f.Merges {
		if m.Stands() && m.Repository != "" && carried[m.Repository] {
			waiting = append(waiting, m)
		}
	}
	slices.SortFunc(waiting, func(a, b chain.Merge) int { return cmp.Or(a.Merged.Compare(b.Merged), cmp.Compare(a.Commit, b.Commit)) })
	if len(waiting) > 0 && waiting[0].Alone {
		return waiting[:1]
	}
	if at := slices.IndexFunc(waiting, func(m chain.Merge) bool { return m.Alone }); at >= 0 {
		return waiting[:at]
	}
	return waiting
}

// ahead parts merges that bring something from those behind what stands: a merge that was heard of late is contained in one that came after it,
// and carrying it would lead back. One that goes with a newer merge of its repository is no reason to go back either.
func (f TrackFacts) ahead(batch []chain.Merge, t chain.Track) (ahead, behind []chain.Merge) {
	newest, standing := map[string]time.Time{}, f.standing(t)
	for _, m := range batch {
		newest[m.Repository] = m.Merged // oldest first
	}
	for _, m := range batch {
		if stands, ok := standing[m.Repository]; ok && newest[m.Repository].Before(stands) {
			behind = append(behind, m)
		} else {
			ahead = append(ahead, m)
		}
	}
	return ahead, behind
}

// standing gives, of each repository, when the newest merge came onto its branch that one of the track's modules stands at.
func (f TrackFacts) standing(t chain.Track) map[string]time.Time {
	type commit struct{ repository, commit string }
	told := map[commit]bool{}
	for n, v := range f.Told {
		if v.Commit != "" && slices.Contains(t.Modules, n.Module) {
			told[commit{f.Modules[n.Module].Repository, v.Commit}] = true
		}
	}
	list := map[string]time.Time{}
	for _, m := range f.Merges {
		if told[commit{m.Repository, m.Commit}] && m.Merged.After(list[m.Repository]) {
			list[m.Repository] = m.Merged
		}
	}
	return list
}

// built gives the newest build of a module that has published at a merge's commit.
func (f TrackFacts) built(module string, m chain.Merge) (chain.Build, bool) {
	var newest chain.Build
	found := false
	for _, b := range f.Builds {
		if b.Module == module && b.Repository == m.Repository && b.Commit == m.Commit && b.Published != nil && (!found || b.At.After(newest.At)) {
			newest, found = b, true
		}
	}
	return newest, found
}
