package projection

import (
	"slices"

	"catenary/events"
)

// State is what rules need of a projection.
type State struct {
	Paused bool
	// Skipped lists the events that were left out, in order. Each is one person's decision, so there are few.
	Skipped []uint64
}

// skips says whether an event was left out.
func (s State) skips(event uint64) bool {
	_, found := slices.BinarySearch(s.Skipped, event)
	return found
}

// Evolve gives the state after a fact.
func Evolve(s State, fact events.Projection) State {
	switch e := fact.(type) {
	case events.ProjectionPaused:
		s.Paused = true
	case events.ProjectionResumed:
		s.Paused = false
	case events.ProjectionSkipped:
		if at, found := slices.BinarySearch(s.Skipped, e.Event); !found {
			s.Skipped = slices.Insert(slices.Clone(s.Skipped), at, e.Event) // the state before may be gone back to
		}
	}
	return s
}
