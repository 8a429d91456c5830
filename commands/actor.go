package commands

import (
	"catenary/es"
	"catenary/events"
)

// ForgetActor asks that the names behind an opaque id be erased, wherever they are kept.
type ForgetActor struct {
	// Actor is the id.
	Actor string `json:"actor"`
	// Reason says why. It is kept for ever, so it must not name the person.
	Reason string `json:"reason"`
}

// Ref is the actor.
func (c ForgetActor) Ref() es.Ref {
	return es.Ref{Aggregate: events.AggregateActor, Key: es.Key(c.Actor)}
}

// Verb is forget.
func (ForgetActor) Verb() string { return "forget" }

// Forgotten gives the id and the reason.
func (c ForgetActor) Forgotten() (actor, reason string) { return c.Actor, c.Reason }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ForgetActor) Validate() error {
	var k check
	k.name("actor", c.Actor)
	if c.Reason == "" {
		k.fail(CodeMissingField, "reason is empty", "say why the person is forgotten, without the name")
	}
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}
