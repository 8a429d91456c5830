package commands

import (
	"catenary/es"
	"catenary/events"
)

// DeclareFreeze lets a freeze hold.
type DeclareFreeze struct {
	Name     string          `json:"name"`
	Selector events.Selector `json:"selector,omitzero"`
	Window   *events.Window  `json:"window,omitempty"`
	Reason   string          `json:"reason,omitempty"`
}

// LiftFreeze takes a freeze back.
type LiftFreeze struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
}

func freezeRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateFreeze, Key: es.Key(name)}
}

// Ref is the freeze.
func (c DeclareFreeze) Ref() es.Ref { return freezeRef(c.Name) }

// Ref is the freeze.
func (c LiftFreeze) Ref() es.Ref { return freezeRef(c.Name) }

// Verb is declare.
func (DeclareFreeze) Verb() string { return "declare" }

// Verb is lift.
func (LiftFreeze) Verb() string { return "lift" }
