package commands

import (
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

func nodeRef(name string) es.Ref { return es.Ref{Aggregate: events.AggregateNode, Key: es.Key(name)} }

// Ref is the node.
func (c RegisterNode) Ref() es.Ref { return nodeRef(c.Node) }

// Ref is the node.
func (c RelabelNode) Ref() es.Ref { return nodeRef(c.Node) }

// Ref is the node.
func (c RetireNode) Ref() es.Ref { return nodeRef(c.Node) }

// Verb is register.
func (RegisterNode) Verb() string { return "register" }

// Verb is relabel.
func (RelabelNode) Verb() string { return "relabel" }

// Verb is retire.
func (RetireNode) Verb() string { return "retire" }
