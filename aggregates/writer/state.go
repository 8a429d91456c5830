package writer

import (
	"time"

	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// State is what rules need of the writer.
type State struct {
	// Started is when the present writer began, in nanoseconds since 1970.
	Started int64
}

// Decide records a start, whatever the state.
func Decide(c es.Command) ([]es.KeyedEvent, error) {
	p, ok := c.Data.(commands.StartWriter)
	if !ok {
		return nil, decision.Unknown(c)
	}
	if p.Loss != nil {
		return decision.Record(c.Ref, p.WriterStarted, *p.Loss), nil
	}
	return decision.Record(c.Ref, p.WriterStarted), nil
}

// Evolve gives the state after a fact that was recorded at a time.
func Evolve(s State, fact events.Writer, recorded time.Time) State {
	switch fact.(type) {
	case events.WriterStarted:
		return State{Started: recorded.UnixNano()}
	case events.WriterLossAccepted:
		// It is looked up in the stream when a start finds a witness against it: no rule needs it.
	}
	return s
}
