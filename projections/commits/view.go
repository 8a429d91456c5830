package commits

import (
	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Commits, version, fold) }

func fold(_ *chain.Commit, e es.Event, data events.Commit) (chain.Commit, error) {
	switch data := data.(type) {
	case events.CommitRecorded:
		heard := data.Heard
		if heard.IsZero() {
			heard = e.Recorded
		}
		return chain.Commit{
			Repository: data.Repository, Branch: data.Branch, Commit: data.Commit,
			Merged: data.Merged.UTC(), Heard: heard.UTC(), Author: data.Author,
		}, nil
	}
	return chain.Commit{}, perkey.Unknown(e)
}
