package commands

import (
	"time"
	_ "time/tzdata" // every machine knows every zone, and the same ones

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

// FreezeRef is the instance of a freeze.
func FreezeRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateFreeze, Key: es.Key(name)}
}

// Ref is the freeze.
func (c DeclareFreeze) Ref() es.Ref { return FreezeRef(c.Name) }

// Ref is the freeze.
func (c LiftFreeze) Ref() es.Ref { return FreezeRef(c.Name) }

// Verb is declare.
func (DeclareFreeze) Verb() string { return "declare" }

// Verb is lift.
func (LiftFreeze) Verb() string { return "lift" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c DeclareFreeze) Validate() error {
	var k check
	k.name("name", c.Name)
	k.names("selector.modules", c.Selector.Modules)
	k.names("selector.nodes", c.Selector.Nodes)
	k.labels("selector.labels", c.Selector.Labels)
	k.text("reason", c.Reason)
	if c.Window != nil {
		if _, err := c.Window.Schedule(time.LoadLocation); err != nil {
			k.fail(CodeBadValue, "window: "+err.Error(), "")
		}
	}
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c LiftFreeze) Validate() error {
	var k check
	k.name("name", c.Name)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}
