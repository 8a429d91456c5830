package commands

import (
	"catenary/es"
	"catenary/events"
)

// PauseProjection lets a projection fold no further until it is resumed.
type PauseProjection struct {
	View   string `json:"view"`
	Reason string `json:"reason"`
}

// ResumeProjection lets a projection that is paused go on.
type ResumeProjection struct {
	View   string `json:"view"`
	Reason string `json:"reason,omitempty"`
}

// SkipProjection leaves one event out of a projection, for good. Whether the projection stands at that event is for whoever
// sends the command to look at: the record of it does not depend on how far a projector is.
type SkipProjection struct {
	View string `json:"view"`
	// Event is the sequence of the event that is left out.
	Event  uint64 `json:"event"`
	Reason string `json:"reason"`
}

// ProjectionRef is the instance of a projection, by the name of its view.
func ProjectionRef(view string) es.Ref {
	return es.Ref{Aggregate: events.AggregateProjection, Key: es.Key(view)}
}

// Ref is the projection.
func (c PauseProjection) Ref() es.Ref { return ProjectionRef(c.View) }

// Ref is the projection.
func (c ResumeProjection) Ref() es.Ref { return ProjectionRef(c.View) }

// Ref is the projection.
func (c SkipProjection) Ref() es.Ref { return ProjectionRef(c.View) }

// Verb is pause.
func (PauseProjection) Verb() string { return "pause" }

// Verb is resume.
func (ResumeProjection) Verb() string { return "resume" }

// Verb is skip.
func (SkipProjection) Verb() string { return "skip" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c PauseProjection) Validate() error {
	var k check
	k.name("view", c.View)
	k.need("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ResumeProjection) Validate() error {
	var k check
	k.name("view", c.View)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c SkipProjection) Validate() error {
	var k check
	k.name("view", c.View)
	if c.Event == 0 {
		k.fail(CodeMissingField, "event is missing", "give the sequence of the event that is to be left out, as the log shows it")
	}
	k.need("reason", c.Reason)
	return k.done(c.Ref())
}
