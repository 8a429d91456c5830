package strategy

import "catenary/events"

// Status is how a strategy stands.
type Status uint8

// The statuses of a strategy.
const (
	Unknown Status = iota
	Declared
	Ended
)

// State is what rules need of a strategy.
type State struct {
	Status Status
	// Digest is that of the strategy's canonical JSON.
	Digest string
}

// World is what deciding about a strategy needs of everything else.
type World interface {
	// TracksOf gives the tracks, in order, that name a strategy.
	TracksOf(strategy string) []string
}

// Evolve gives the state after a fact.
func Evolve(s State, fact events.StrategyFact) State {
	switch e := fact.(type) {
	case events.StrategyDeclared:
		return State{Status: Declared, Digest: e.Digest}
	case events.StrategyEnded:
		return State{Status: Ended}
	}
	return s
}
