package commands

import (
	"math"

	"catenary/es"
	"catenary/events"
)

// RegisterNode makes a node known, or known again after it was retired.
type RegisterNode struct {
	Node   string            `json:"node"`
	Labels map[string]string `json:"labels,omitempty"`
	// ManagedBy is agent or external; empty means agent.
	ManagedBy string `json:"managed-by,omitempty"`
}

// RelabelNode replaces a node's labels.
type RelabelNode struct {
	Node   string            `json:"node"`
	Labels map[string]string `json:"labels,omitempty"`
}

// RetireNode ends a node and every assignment that stands on it.
type RetireNode struct {
	Node   string `json:"node"`
	Reason string `json:"reason,omitempty"`
	// Confirm is the number of assignments this ends. It must be exact when there are any.
	Confirm *int `json:"confirm,omitempty"`
}

// NodeRef is the instance of a node.
func NodeRef(name string) es.Ref { return es.Ref{Aggregate: events.AggregateNode, Key: es.Key(name)} }

// Ref is the node.
func (c RegisterNode) Ref() es.Ref { return NodeRef(c.Node) }

// Ref is the node.
func (c RelabelNode) Ref() es.Ref { return NodeRef(c.Node) }

// Ref is the node.
func (c RetireNode) Ref() es.Ref { return NodeRef(c.Node) }

// Verb is register.
func (RegisterNode) Verb() string { return "register" }

// Verb is relabel.
func (RelabelNode) Verb() string { return "relabel" }

// Verb is retire.
func (RetireNode) Verb() string { return "retire" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RegisterNode) Validate() error {
	var k check
	k.name("node", c.Node)
	k.labels("labels", c.Labels)
	if c.ManagedBy != "" {
		k.oneOf("managed-by", c.ManagedBy, events.ManagedByAgent, events.ManagedByExternal)
	}
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RelabelNode) Validate() error {
	var k check
	k.name("node", c.Node)
	k.labels("labels", c.Labels)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RetireNode) Validate() error {
	var k check
	k.name("node", c.Node)
	k.text("reason", c.Reason)
	if c.Confirm != nil {
		k.between("confirm", *c.Confirm, 0, math.MaxInt32)
	}
	return k.done(c.Ref())
}
