package node

import (
	"fmt"
	"maps"

	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of nodes.
const (
	CodeRegistered   = "registered"
	CodeUnknown      = "unknown-node"
	CodeRetired      = "node-retired"
	CodeConfirmCount = "confirm-count"
)

// Decide gives what a command about a node leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.RegisterNode:
		return register(s, c, p)
	case commands.RelabelNode:
		return relabel(s, c, p)
	case commands.RetireNode:
		return retire(w, s, c, p)
	}
	return nil, decision.Unknown(c)
}

func register(s State, c es.Command, p commands.RegisterNode) ([]es.KeyedEvent, error) {
	if p.ManagedBy == "" {
		p.ManagedBy = events.ManagedByAgent
	}
	switch {
	case s.Status != Registered:
		return decision.Record(c.Ref, events.NodeRegistered{Node: p.Node, Labels: p.Labels, ManagedBy: p.ManagedBy}), nil
	case s.External != (p.ManagedBy == events.ManagedByExternal):
		return nil, es.Refuse(CodeRegistered, fmt.Sprintf("node %s is registered and not managed by %s", p.Node, p.ManagedBy),
			"who acts on a node does not change: retire it first, or register another node")
	case !maps.Equal(s.Labels, p.Labels):
		return nil, es.Refuse(CodeRegistered, fmt.Sprintf("node %s is registered with other labels", p.Node), "use node relabel")
	}
	return nil, nil
}

func relabel(s State, c es.Command, p commands.RelabelNode) ([]es.KeyedEvent, error) {
	if err := Known(p.Node, s); err != nil {
		return nil, err
	}
	if maps.Equal(s.Labels, p.Labels) {
		return nil, nil
	}
	return decision.Record(c.Ref, events.NodeRelabelled{Labels: p.Labels}), nil
}

func retire(w World, s State, c es.Command, p commands.RetireNode) ([]es.KeyedEvent, error) {
	switch s.Status {
	case Unknown:
		return nil, unknown(p.Node)
	case Retired:
		return nil, nil
	}
	modules := w.AssignedOn(p.Node)
	if err := confirmed(p, modules); err != nil {
		return nil, err
	}
	var facts []es.KeyedEvent
	for _, m := range modules {
		facts = append(facts, decision.Record(commands.AssignmentRef(p.Node, m), events.AssignmentEnded{Node: p.Node, Module: m, Reason: p.Reason})...)
	}
	return append(facts, decision.Record(c.Ref, events.NodeRetired{Reason: p.Reason})...), nil
}

// confirmed demands the exact number of what retiring ends: somebody who looked knows it.
func confirmed(p commands.RetireNode, modules []string) error {
	switch n := len(modules); {
	case p.Confirm == nil && n == 0, p.Confirm != nil && *p.Confirm == n:
		return nil
	case n == 0:
		return es.Refuse(CodeConfirmCount, fmt.Sprintf("retiring node %s ends nothing, but %d is confirmed", p.Node, *p.Confirm), "leave the confirmation out")
	default:
		message := fmt.Sprintf("retiring node %s ends %s: %s", p.Node, decision.Count(n, "assignment"), decision.Names(modules, n))
		if p.Confirm != nil {
			message += fmt.Sprintf("; %d is confirmed", *p.Confirm)
		}
		return es.Refuse(CodeConfirmCount, message, fmt.Sprintf("confirm with the count %d if that is meant", n))
	}
}

// Known refuses a node that is not registered now.
func Known(node string, s State) error {
	switch s.Status {
	case Unknown:
		return unknown(node)
	case Retired:
		return es.Refuse(CodeRetired, fmt.Sprintf("node %s is retired", node), "register it again with node register")
	}
	return nil
}

func unknown(node string) error {
	return es.Refuse(CodeUnknown, fmt.Sprintf("node %s is not known", node), "register it with node register")
}
