package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"catenary/chain"
	"catenary/events"
)

// latest is when the last of the freezes ends; zero when one of them has no known end.
func latest(list []frost) time.Time {
	var last time.Time
	for _, f := range list {
		if f.until.IsZero() {
			return time.Time{}
		}
		if f.until.After(last) {
			last = f.until
		}
	}
	return last
}

// absent lists what is missing, by name.
func (m *maker) absent() []Missing {
	var list []Missing
	for _, name := range slices.Sorted(maps.Keys(m.missing)) {
		list = append(list, *m.missing[name])
	}
	return list
}

// counted counts the steps of each tier.
func (m *maker) counted() []Tier {
	tiers := make([]Tier, len(m.tiers))
	for i, t := range m.tiers {
		tiers[i].Name = t.Name
	}
	for _, s := range m.steps {
		tiers[s.tier].Steps++
	}
	return tiers
}

// targets lists what modules are carried to, each once.
func (m *maker) targets() []events.Target {
	if len(m.request.Targets) > 0 {
		return m.request.Targets
	}
	type key struct{ module, to string }
	seen := map[key]bool{}
	var list []events.Target
	for _, s := range m.steps {
		if k := (key{s.Module, to(s.After)}); s.After != nil && !s.Refresh && !seen[k] {
			seen[k] = true
			list = append(list, events.Target{Module: s.Module, Version: *s.After})
		}
	}
	sortTargets(list)
	return list[:min(len(list), maxTargets)]
}

// maxTargets bounds what a plan names as carried. One that takes a fleet back may carry more; its steps say all of it.
const maxTargets = 500

// commits gives the commit of each repository that is carried. Only a request for targets fixes any: what stood once may have
// come from many.
func (m *maker) commits(targets []events.Target) ([]events.FixedCommit, error) {
	if len(m.request.Targets) == 0 {
		return nil, nil
	}
	fixed := map[string]events.FixedCommit{}
	for _, t := range targets {
		repository := m.facts.Modules[t.Module].Repository
		if repository == "" || t.Commit == "" {
			continue
		}
		if other, ok := fixed[repository]; ok && other.Commit != t.Commit {
			return nil, &CommitsError{Repository: repository, One: other.Commit, Other: t.Commit}
		}
		c := events.FixedCommit{Repository: repository, Commit: t.Commit}
		if known, ok := m.commit(repository, t.Commit); ok {
			c.Branch, c.Merged = known.Branch, known.Merged
		}
		fixed[repository] = c
	}
	var list []events.FixedCommit
	for _, repository := range slices.Sorted(maps.Keys(fixed)) {
		list = append(list, fixed[repository])
	}
	return list, nil
}

func (m *maker) commit(repository, commit string) (chain.Commit, bool) {
	at := slices.IndexFunc(m.facts.Commits, func(c chain.Commit) bool { return c.Repository == repository && c.Commit == commit })
	if at < 0 {
		return chain.Commit{}, false
	}
	return m.facts.Commits[at], true
}

// since lists the commits of each carried repository that came onto the branch after the oldest one that stands, up to the one that is
// carried: what is new at one place at least.
func (m *maker) since(fixed []events.FixedCommit) []chain.Commit {
	oldest := map[string]time.Time{}
	for _, s := range m.steps {
		if s.Before == nil || s.Before.Commit == "" {
			continue
		}
		repository := m.facts.Modules[s.Module].Repository
		if c, ok := m.commit(repository, s.Before.Commit); ok {
			if first, known := oldest[repository]; !known || c.Merged.Before(first) {
				oldest[repository] = c.Merged
			}
		}
	}
	var list []chain.Commit
	for _, f := range fixed {
		from, known := oldest[f.Repository]
		if !known || f.Merged.IsZero() {
			continue
		}
		for _, c := range m.facts.Commits {
			if c.Repository == f.Repository && c.Branch == f.Branch && c.Merged.After(from) && !c.Merged.After(f.Merged) {
				list = append(list, c)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b chain.Commit) int { return b.Merged.Compare(a.Merged) })
	return list
}

func sortTargets(list []events.Target) {
	slices.SortFunc(list, func(a, b events.Target) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Version.String(), b.Version.String()))
	})
}
