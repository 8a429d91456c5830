package track

import (
	"slices"

	"catenary/aggregates/content"
	"catenary/aggregates/module"
	"catenary/aggregates/strategy"
	"catenary/events"
)

// Status is how a track stands.
type Status uint8

// The statuses of a track.
const (
	Unknown Status = iota
	Declared
	Ended
)

// State is what rules need of a track.
type State struct {
	Status   Status
	Modules  []string
	Strategy string
	// Content stands for all that is said of the track.
	Content content.Digest
}

// Carries says whether the track plans for a module.
func (s State) Carries(module string) bool {
	return s.Status == Declared && slices.Contains(s.Modules, module)
}

// World is what deciding about a track needs of everything else.
type World interface {
	Module(name string) module.State
	Strategy(name string) strategy.State
	// TrackOf gives the track that a module is on.
	TrackOf(module string) (track string, ok bool)
}

// Evolve gives the state after a fact.
func Evolve(s State, fact events.Track) State {
	switch e := fact.(type) {
	case events.TrackDeclared:
		return declared(e.TrackSpec)
	case events.TrackChanged:
		return declared(e.TrackSpec)
	case events.TrackEnded:
		return State{Status: Ended}
	}
	return s
}

func declared(t events.TrackSpec) State {
	return State{Status: Declared, Modules: t.Modules, Strategy: t.Strategy, Content: content.Of(t)}
}
