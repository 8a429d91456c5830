package simulate

import (
	"maps"
	"slices"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
)

// takeRelease takes in what is merged, built and carried.
func (c *chart) takeRelease(e es.Event) {
	key := e.Ref.Key
	switch f := e.Data.(type) {
	case events.MergeHeld:
		m := &chain.Merge{Repository: f.Repository, Branch: f.Branch, Commit: f.Commit, Merged: f.Merged, Alone: f.Alone, Waiting: f.Waiting}
		c.merges[key], c.heard = m, append(c.heard, m)
	case events.MergeTaken:
		c.merges[key].Rollout = f.Rollout
	case events.MergeReleased:
		c.merges[key].Waiting = ""
	case events.BuildAsked:
		b := &chain.Build{ID: f.ID, Module: f.Module, Repository: f.Repository, Commit: f.Commit, At: e.Recorded}
		c.builds[key], c.asked = b, append(c.asked, b)
	case events.BuildPublished:
		ref := f.Reference
		c.builds[key].Published = &ref
	case events.TrackDeclared:
		c.carry(f.TrackSpec)
	case events.TrackChanged:
		c.carry(f.TrackSpec)
	case events.TrackEnded:
		delete(c.tracks, key)
	case events.StrategyDeclared:
		if s, err := events.ParseStrategy(f.Strategy); err == nil {
			c.strategies[f.Name] = s
		}
	}
}

func (c *chart) carry(t events.TrackSpec) {
	c.tracks[t.Track] = chain.Track{Track: t.Track, Modules: t.Modules, Strategy: t.Strategy, On: t.On}
}

// declared lists the tracks, automatic those that plan by themselves.
func (c *chart) declared() []string { return slices.Sorted(maps.Keys(c.tracks)) }

func (c *chart) automatic() []string {
	return slices.DeleteFunc(c.declared(), func(name string) bool { return c.tracks[name].On == events.OnManual })
}

// trackFacts gives what a track decides on.
func (c *chart) trackFacts(t chain.Track, f plan.Facts, triggered bool) plan.TrackFacts {
	of := plan.TrackFacts{Modules: f.Modules, Told: f.Told, Triggered: triggered}
	for _, r := range c.order {
		if !r.final || r.record.Track == t.Track {
			of.Rollouts = append(of.Rollouts, r.record)
		}
	}
	if t.On == events.OnMerge {
		for _, m := range c.heard {
			of.Merges = append(of.Merges, *m)
		}
		for _, b := range c.asked {
			if b.Published != nil {
				of.Builds = append(of.Builds, *b)
			}
		}
		return of
	}
	for _, name := range c.releases {
		if p := c.published[name]; slices.Contains(t.Modules, p.Module) {
			of.Published = append(of.Published, p)
		}
	}
	return of
}
