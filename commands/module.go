package commands

import (
	"catenary/es"
	"catenary/events"
)

// RegisterModule makes a module known, or known again after it was forgotten.
type RegisterModule struct{ events.ModuleSpec }

// ChangeModule replaces all that is said of a module.
type ChangeModule struct{ events.ModuleSpec }

// ForgetModule ends a module. It is refused while the module stands on a node.
type ForgetModule struct {
	Module string `json:"module"`
	Reason string `json:"reason,omitempty"`
}

func moduleRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateModule, Key: es.Key(name)}
}

// Ref is the module.
func (c RegisterModule) Ref() es.Ref { return moduleRef(c.Module) }

// Ref is the module.
func (c ChangeModule) Ref() es.Ref { return moduleRef(c.Module) }

// Ref is the module.
func (c ForgetModule) Ref() es.Ref { return moduleRef(c.Module) }

// Verb is register.
func (RegisterModule) Verb() string { return "register" }

// Verb is change.
func (ChangeModule) Verb() string { return "change" }

// Verb is forget.
func (ForgetModule) Verb() string { return "forget" }
