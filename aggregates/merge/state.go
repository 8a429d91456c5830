package merge

import (
	"time"

	"catenary/aggregates/content"
	"catenary/aggregates/rollout"
	"catenary/events"
)

// State is what rules need of a merge.
type State struct {
	Known bool
	// Waiting says that the merge is not where it belongs yet.
	Waiting bool
	// Alone says that it shares its rollout with no other.
	Alone bool
	// Rollout is the one that took it last.
	Rollout string
	// Content stands for what was said of it when it was last held.
	Content content.Digest
}

// World is what deciding about a merge needs of everything else.
type World interface {
	Rollout(id string) rollout.State
	// MergesOf gives the merges that belong to a rollout, each with its state.
	MergesOf(rollout string) []State
}

// Evolve gives the state after a fact.
func Evolve(s State, fact events.Merge) State {
	switch e := fact.(type) {
	case events.MergeHeld:
		return State{Known: true, Waiting: true, Alone: e.Alone, Rollout: s.Rollout, Content: said(e)}
	case events.MergeTaken:
		s.Rollout = e.Rollout
		return s
	case events.MergeReleased:
		s.Waiting = false
		return s
	}
	return s
}

// said stands for a merge; when we heard of it is no part of it, since we may hear of it again.
func said(e events.MergeHeld) content.Digest {
	e.Heard = time.Time{}
	return content.Of(e)
}
