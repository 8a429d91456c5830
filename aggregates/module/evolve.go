package module

import (
	"catenary/aggregates/content"
	"catenary/events"
)

// Evolve gives the state after a fact.
func Evolve(s State, fact events.Module) State {
	switch e := fact.(type) {
	case events.ModuleRegistered:
		return described(e.ModuleSpec)
	case events.ModuleChanged:
		return described(e.ModuleSpec)
	case events.ModuleEnded:
		return State{Status: Ended}
	}
	return s
}

func described(m events.ModuleSpec) State {
	s := State{Status: Registered, Requires: m.Requires, Content: content.Of(m)}
	if len(m.Labels) > 0 {
		s.Labels = m.Labels
	}
	return s
}
