package freeze

import (
	"fmt"

	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of freezes.
const (
	CodeDeclared = "declared"
	CodeUnknown  = "unknown-freeze"
)

// Decide gives what a command about a freeze leads to. It gives errors of type *[es.Refusal].
func Decide(s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.DeclareFreeze:
		return declare(s, c, p)
	case commands.LiftFreeze:
		return lift(s, c, p)
	}
	return nil, decision.Unknown(c)
}

func declare(s State, c es.Command, p commands.DeclareFreeze) ([]es.KeyedEvent, error) {
	fact := events.FreezeDeclared{Name: p.Name, Selector: p.Selector, Window: p.Window, Reason: p.Reason}
	switch {
	case s.Status != Declared:
		return decision.Record(c.Ref, fact), nil
	case s.Content == content.Of(fact):
		return nil, nil
	}
	return nil, es.Refuse(CodeDeclared, fmt.Sprintf("freeze %s is declared with other content", p.Name), "lift it first, or use another name")
}

func lift(s State, c es.Command, p commands.LiftFreeze) ([]es.KeyedEvent, error) {
	switch s.Status {
	case Unknown:
		return nil, es.Refuse(CodeUnknown, fmt.Sprintf("freeze %s is not known", p.Name), "")
	case Lifted:
		return nil, nil
	}
	return decision.Record(c.Ref, events.FreezeLifted{Reason: p.Reason}), nil
}
