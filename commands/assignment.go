package commands

import (
	"catenary/es"
	"catenary/events"
)

// Assign tells a node to run a module, and with it all that the module requires.
type Assign struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	events.Reference
	Build        string     `json:"build,omitempty"`
	Commit       string     `json:"commit,omitempty"`
	Provisioning events.Raw `json:"provisioning,omitempty"`
	Reason       string     `json:"reason,omitempty"`
}

// Unassign tells a node to run a module no more, nor what was only pulled in by it.
type Unassign struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	Reason string `json:"reason,omitempty"`
}

// Move takes a module from a node to another, as it stands.
type Move struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	To     string `json:"to"`
	Reason string `json:"reason,omitempty"`
}

// Pend means a module for a node without telling the node yet.
type Pend struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	events.Reference
	Build  string `json:"build,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Outcomes a node can report.
const (
	OutcomeApplied      = "applied"
	OutcomeApplyFailed  = "apply-failed"
	OutcomeHealthy      = "healthy"
	OutcomeUnhealthy    = "unhealthy"
	OutcomeRemoved      = "removed"
	OutcomeRemoveFailed = "remove-failed"
	OutcomeDrifted      = "drifted"
)

// Observe reports what runs on a node.
type Observe struct {
	events.Seen
	// Outcome is one of the Outcome constants.
	Outcome string `json:"outcome"`
	// Drift says what was found instead, with the outcome drifted.
	Drift string `json:"drift,omitempty"`
}

// AssignmentRef is the instance of a module on a node.
func AssignmentRef(node, module string) es.Ref {
	return es.Ref{Aggregate: events.AggregateAssignment, Key: es.Key(node, module)}
}

// Ref is the module on the node.
func (c Assign) Ref() es.Ref { return AssignmentRef(c.Node, c.Module) }

// Ref is the module on the node.
func (c Unassign) Ref() es.Ref { return AssignmentRef(c.Node, c.Module) }

// Ref is the module on the node it leaves.
func (c Move) Ref() es.Ref { return AssignmentRef(c.Node, c.Module) }

// Ref is the module on the node.
func (c Pend) Ref() es.Ref { return AssignmentRef(c.Node, c.Module) }

// Ref is the module on the node.
func (c Observe) Ref() es.Ref { return AssignmentRef(c.Node, c.Module) }

// Verb is assign.
func (Assign) Verb() string { return "assign" }

// Verb is unassign.
func (Unassign) Verb() string { return "unassign" }

// Verb is move.
func (Move) Verb() string { return "move" }

// Verb is pend.
func (Pend) Verb() string { return "pend" }

// Verb is observe.
func (Observe) Verb() string { return "observe" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c Assign) Validate() error {
	var k check
	k.place(c.Node, c.Module)
	k.reference(c.Reference, false)
	if c.Reference.IsZero() && c.Build == "" {
		k.fail(CodeMissingField, "neither package, artifact nor build is given", "say what the node shall run")
	}
	k.maybeName("build", c.Build)
	k.maybeName("commit", c.Commit)
	k.raw("provisioning", c.Provisioning)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c Unassign) Validate() error {
	var k check
	k.place(c.Node, c.Module)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c Move) Validate() error {
	var k check
	k.place(c.Node, c.Module)
	k.name("to", c.To)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c Pend) Validate() error {
	var k check
	k.place(c.Node, c.Module)
	k.reference(c.Reference, false)
	k.maybeName("build", c.Build)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c Observe) Validate() error {
	var k check
	k.place(c.Node, c.Module)
	k.reference(c.Reference, false)
	k.maybeName("build", c.Build)
	k.maybeName("rollout", c.Rollout)
	k.outputs("outputs", c.Outputs)
	k.text("reason", c.Reason)
	k.driver(c.Driver)
	k.oneOf("outcome", c.Outcome, OutcomeApplied, OutcomeApplyFailed, OutcomeHealthy, OutcomeUnhealthy,
		OutcomeRemoved, OutcomeRemoveFailed, OutcomeDrifted)
	if c.Outcome == OutcomeDrifted {
		k.need("drift", c.Drift)
	} else if c.Drift != "" {
		k.failf(CodeBadValue, "leave it out, or report the outcome drifted", "drift is given with the outcome %s", c.Outcome)
	}
	return k.done(c.Ref())
}

func (c *check) place(node, module string) {
	c.name("node", node)
	c.name("module", module)
}
