package merges

import (
	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Merges, version, fold) }

func fold(before *chain.Merge, e es.Event, data events.Merge) (chain.Merge, error) {
	switch data := data.(type) {
	case events.MergeHeld:
		m := chain.Merge{
			Repository: data.Repository, Branch: data.Branch, Commit: data.Commit, Merged: data.Merged, Heard: data.Heard,
			Event: data.Event, Alone: data.Alone, Waiting: data.Waiting,
		}
		if before != nil {
			m.Rollout = before.Rollout
		}
		return m, nil
	case events.MergeTaken:
		return change(before, e, func(m *chain.Merge) { m.Rollout = data.Rollout })
	case events.MergeReleased:
		return change(before, e, func(m *chain.Merge) {
			m.Waiting = ""
			if data.Placed {
				m.Placed = e.Effective.UTC()
			}
		})
	}
	return chain.Merge{}, perkey.Unknown(e)
}

func change(before *chain.Merge, e es.Event, how func(*chain.Merge)) (chain.Merge, error) {
	if before == nil {
		return chain.Merge{}, perkey.Untold(e)
	}
	how(before)
	return *before, nil
}
