package commands

import (
	"slices"
	"time"

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

// ModuleRef is the instance of a module.
func ModuleRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateModule, Key: es.Key(name)}
}

// Ref is the module.
func (c RegisterModule) Ref() es.Ref { return ModuleRef(c.Module) }

// Ref is the module.
func (c ChangeModule) Ref() es.Ref { return ModuleRef(c.Module) }

// Ref is the module.
func (c ForgetModule) Ref() es.Ref { return ModuleRef(c.Module) }

// Verb is register.
func (RegisterModule) Verb() string { return "register" }

// Verb is change.
func (ChangeModule) Verb() string { return "change" }

// Verb is forget.
func (ForgetModule) Verb() string { return "forget" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RegisterModule) Validate() error { return checkModule(c.ModuleSpec, c.Ref()) }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ChangeModule) Validate() error { return checkModule(c.ModuleSpec, c.Ref()) }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ForgetModule) Validate() error {
	var k check
	k.name("module", c.Module)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// maxDeliveryTime bounds what a module's delivery waits for. What takes longer than a day has failed.
const maxDeliveryTime = 24 * time.Hour

func checkModule(m events.ModuleSpec, ref es.Ref) error {
	var k check
	k.name("module", m.Module)
	k.line("repository", m.Repository)
	k.line("seat", m.Seat)
	k.line("path", m.Path)
	k.maybeName("kind", m.Kind)
	k.names("requires", m.Requires)
	if slices.Contains(m.Requires, m.Module) {
		k.failf(CodeBadValue, "leave it out of requires", "module %s requires itself", m.Module)
	}
	k.labels("labels", m.Labels)
	if d := m.Delivery; d != nil {
		k.names("delivery.drivers", d.Drivers)
		k.duration("delivery.timeout", d.Timeout, maxDeliveryTime)
		if d.Check != nil {
			k.health("delivery.check", *d.Check)
		}
	}
	return k.done(ref)
}

// health demands exactly one way to look after a module.
func (c *check) health(field string, h events.Check) {
	ways := 0
	for _, given := range []bool{len(h.Exec) > 0, h.HTTP != "", h.TCP != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		c.failf(CodeBadValue, "give one of exec, http and tcp", "%s has %d ways to check", field, ways)
	}
	c.lines(field+".exec", h.Exec)
	c.line(field+".http", h.HTTP)
	c.line(field+".tcp", h.TCP)
	c.duration(field+".interval", h.Interval, maxDeliveryTime)
	c.between(field+".successes", h.Successes, 0, MaxCheckTries)
	c.between(field+".failures", h.Failures, 0, MaxCheckTries)
}
