package commit

import (
	"time"

	"catenary/aggregates/content"
	"catenary/events"
)

// State is what rules need of a commit.
type State struct {
	// Content stands for what is said of the commit; it is zero until the commit is recorded.
	Content content.Digest
}

// Evolve gives the state after a fact.
func Evolve(_ State, fact events.Commit) State {
	switch e := fact.(type) {
	case events.CommitRecorded:
		return State{Content: said(e)}
	}
	return State{}
}

func said(e events.CommitRecorded) content.Digest {
	e.Heard = time.Time{}
	return content.Of(e)
}
