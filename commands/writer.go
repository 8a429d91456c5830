package commands

import (
	"catenary/es"
	"catenary/events"
)

// StartWriter is what a writer records when it begins to append. It does not come over the bus.
type StartWriter struct {
	events.WriterStarted
	// Loss is what somebody has accepted to be lost, if so. It is recorded in the same append.
	Loss *events.WriterLossAccepted
}

// Ref is the writer.
func (StartWriter) Ref() es.Ref {
	return es.Ref{Aggregate: events.AggregateWriter, Key: events.WriterKey}
}

// Verb is start.
func (StartWriter) Verb() string { return "start" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c StartWriter) Validate() error {
	var k check
	k.name("id", c.ID)
	k.line("program", c.Program)
	return k.done(c.Ref())
}
