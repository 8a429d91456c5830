package actor

import (
	"catenary/aggregates/decision"
	"catenary/aggregates/snapshot"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// State is what rules need of an actor.
type State struct{ Forgotten bool }

// Decide gives the events a command leads to.
func Decide(s State, c es.Command) ([]es.KeyedEvent, error) {
	p, ok := c.Data.(commands.ForgetActor)
	switch {
	case !ok:
		return nil, decision.Unknown(c)
	case s.Forgotten:
		return nil, nil
	}
	return decision.Record(c.Ref, events.ActorForgotten{Reason: p.Reason}), nil
}

// Evolve gives the state after a fact.
func Evolve(s State, fact events.Actor) State {
	switch fact.(type) {
	case events.ActorForgotten:
		s.Forgotten = true
	}
	return s
}

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) { w.Flag(s.Forgotten) }

// Restored reads a state.
func Restored(r *snapshot.Reader) State { return State{Forgotten: r.Flag()} }
