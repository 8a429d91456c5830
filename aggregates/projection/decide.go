package projection

import (
	"fmt"

	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// CodeTooManySkips is the code of the refusal of a skip when so many events were left out that the view is not one of this
// stream any more.
const CodeTooManySkips = "too-many-skips"

// MaxSkips bounds the events that one projection leaves out. Each is decided by a person; a view that can't fold thousands
// of events needs another program, or to be built without them.
const MaxSkips = 10_000

// Decide gives the facts a command leads to.
func Decide(s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.PauseProjection:
		if s.Paused {
			return nil, nil
		}
		return decision.Record(c.Ref, events.ProjectionPaused{View: p.View, Reason: p.Reason}), nil
	case commands.ResumeProjection:
		if !s.Paused {
			return nil, nil
		}
		return decision.Record(c.Ref, events.ProjectionResumed{Reason: p.Reason}), nil
	case commands.SkipProjection:
		return skip(s, c, p)
	}
	return nil, decision.Unknown(c)
}

func skip(s State, c es.Command, p commands.SkipProjection) ([]es.KeyedEvent, error) {
	switch {
	case s.skips(p.Event):
		return nil, nil
	case len(s.Skipped) >= MaxSkips:
		return nil, es.Refuse(CodeTooManySkips, fmt.Sprintf("%s leaves out %d events already: the limit is %d", p.View, len(s.Skipped), MaxSkips),
			"use a program that can fold them")
	}
	return decision.Record(c.Ref, events.ProjectionSkipped{View: p.View, Event: p.Event, Reason: p.Reason}), nil
}
