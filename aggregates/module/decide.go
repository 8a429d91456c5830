package module

import (
	"fmt"

	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of modules.
const (
	CodeRegistered = "registered"
	CodeUnknown    = "unknown-module"
	CodeEnded      = "module-ended"
	CodeStands     = "module-stands"
)

// Decide gives what a command about a module leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.RegisterModule:
		return register(s, c, p)
	case commands.ChangeModule:
		return change(s, c, p)
	case commands.ForgetModule:
		return forget(w, s, c, p)
	}
	return nil, decision.Unknown(c)
}

func register(s State, c es.Command, p commands.RegisterModule) ([]es.KeyedEvent, error) {
	switch {
	case s.Status != Registered:
		return decision.Record(c.Ref, events.ModuleRegistered{ModuleSpec: p.ModuleSpec}), nil
	case s.Content == content.Of(p.ModuleSpec):
		return nil, nil
	}
	return nil, es.Refuse(CodeRegistered, fmt.Sprintf("module %s is registered with other content", p.Module), "use module change")
}

func change(s State, c es.Command, p commands.ChangeModule) ([]es.KeyedEvent, error) {
	if err := Known(p.Module, s); err != nil {
		return nil, err
	}
	if s.Content == content.Of(p.ModuleSpec) {
		return nil, nil
	}
	return decision.Record(c.Ref, events.ModuleChanged{ModuleSpec: p.ModuleSpec}), nil
}

func forget(w World, s State, c es.Command, p commands.ForgetModule) ([]es.KeyedEvent, error) {
	switch s.Status {
	case Unknown:
		return nil, unknown(p.Module)
	case Ended:
		return nil, nil
	}
	if nodes, total := w.NodesOf(p.Module, decision.MostNames); total > 0 {
		return nil, es.Refuse(CodeStands, fmt.Sprintf("module %s stands on %s: %s", p.Module, decision.Count(total, "node"), decision.Names(nodes, total)),
			"unassign it there first")
	}
	return decision.Record(c.Ref, events.ModuleEnded{Reason: p.Reason}), nil
}

// Known refuses a module that is not registered now.
func Known(module string, s State) error {
	switch s.Status {
	case Unknown:
		return unknown(module)
	case Ended:
		return es.Refuse(CodeEnded, fmt.Sprintf("module %s was forgotten", module), "register it again with module register")
	}
	return nil
}

func unknown(module string) error {
	return es.Refuse(CodeUnknown, fmt.Sprintf("module %s is not known", module), "register it with module register")
}
