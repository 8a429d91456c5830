package assignment

import (
	"bytes"
	"fmt"

	"catenary/aggregates/decision"
	"catenary/aggregates/module"
	"catenary/aggregates/node"
	"catenary/aggregates/publication"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of assignments.
const (
	CodeNotAssigned       = "not-assigned"
	CodeNotStanding       = "not-standing"
	CodeStands            = "stands"
	CodeStillRequired     = "still-required"
	CodeSameNode          = "same-node"
	CodeTargetStands      = "target-stands"
	CodeNotPublished      = "not-published"
	CodeReferenceMismatch = "reference-mismatch"
	CodeCommitMismatch    = "commit-mismatch"
	CodeInputsTooLarge    = "inputs-too-large"
)

// Decide gives what a command about an assignment leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.Assign:
		if c.Backfill {
			return backfillAssign(w, c, p)
		}
		return assign(w, s, c, p)
	case commands.Unassign:
		if c.Backfill {
			return backfillUnassign(c, p), nil
		}
		return unassign(w, s, c, p)
	case commands.Move:
		return move(w, s, c, p)
	case commands.Pend:
		return pend(w, s, c, p)
	case commands.Observe:
		return observe(s, c, p)
	}
	return nil, decision.Unknown(c)
}

// CanBackfill says whether a command may add to history.
func CanBackfill(payload any) bool {
	switch payload.(type) {
	case commands.Assign, commands.Unassign:
		return true
	}
	return false
}

func assign(w World, s State, c es.Command, p commands.Assign) ([]es.KeyedEvent, error) {
	run, err := tellable(w, p.Node, p.Module, request{ref: p.Reference, build: p.Build, commit: p.Commit, reason: p.Reason})
	if err != nil {
		return nil, err
	}
	var facts []es.KeyedEvent
	if !(s.OwnSake() && sameRun(s.Run(), run) && bytes.Equal(s.Provisioning(), p.Provisioning)) {
		told := run.told(p.Node, p.Module, p.Reason)
		told.Provisioning = p.Provisioning
		if told.Inputs, err = handed(w, events.StepName{Node: p.Node, Module: p.Module}, nil); err != nil {
			return nil, err
		}
		facts = decision.Record(c.Ref, events.AssignmentAssigned{Told: told})
	}
	pulled, err := pullIn(w, p.Node, p.Module, p.Reason)
	return append(facts, pulled...), err
}

// sameRun compares what is run; which rollout put it there is no part of it.
func sameRun(a, b Run) bool {
	a.Rollout, b.Rollout = "", ""
	return a == b
}

// tellable checks that the module can run on the node, and settles what is to be run.
func tellable(w World, nodeName, moduleName string, r request) (Run, error) {
	if err := node.Known(nodeName, w.Node(nodeName)); err != nil {
		return Run{}, err
	}
	if err := module.Known(moduleName, w.Module(moduleName)); err != nil {
		return Run{}, err
	}
	run, p, err := r.settle(w)
	if err != nil {
		return Run{}, err
	}
	return run, publication.Allowed(run.Reference(), p, r.reason)
}

func unassign(w World, s State, c es.Command, p commands.Unassign) ([]es.KeyedEvent, error) {
	fact := decision.Record(c.Ref, events.AssignmentEnded{Node: p.Node, Module: p.Module, Reason: p.Reason})
	switch s.Status {
	case None:
		return nil, notAssigned(p.Node, p.Module)
	case Ended:
		return nil, nil
	case Pending:
		return fact, nil
	case Standing:
	}
	left, err := leave(w, p.Node, p.Module, p.Reason)
	return append(fact, left...), err
}

// move takes a module to another node in one append. There it stands for its own sake: what pulled it in stays behind.
func move(w World, s State, c es.Command, p commands.Move) ([]es.KeyedEvent, error) {
	switch {
	case p.Node == p.To:
		return nil, es.Refuse(CodeSameNode, fmt.Sprintf("module %s is to move from node %s to itself", p.Module, p.Node), "name another node")
	case s.Status == None:
		return nil, notAssigned(p.Node, p.Module)
	case !s.Stands():
		return nil, notStanding(p.Node, p.Module)
	}
	if err := node.Known(p.To, w.Node(p.To)); err != nil {
		return nil, err
	}
	if w.Assignment(p.To, p.Module).Stands() {
		return nil, es.Refuse(CodeTargetStands, fmt.Sprintf("module %s stands on node %s already", p.Module, p.To), "unassign it on one of the nodes instead")
	}
	ref := s.Run().Reference()
	if err := publication.Allowed(ref, w.Publication(ref), p.Reason); err != nil {
		return nil, err
	}
	left, err := leave(w, p.Node, p.Module, p.Reason)
	if err != nil {
		return nil, err
	}
	pulled, err := pullIn(w, p.To, p.Module, p.Reason)
	if err != nil {
		return nil, err
	}
	told := s.told(p.To, p.Module, p.Reason)
	told.RequiredBy, told.Inputs = nil, pass(w.Assignment(p.To, p.Module).inputs(), told.Inputs)
	facts := decision.Record(c.Ref, events.AssignmentMovedOut{Node: p.Node, Module: p.Module, To: p.To, Reason: p.Reason})
	facts = append(facts, decision.Record(commands.AssignmentRef(p.To, p.Module), events.AssignmentMovedIn{Told: told, From: p.Node})...)
	return append(append(facts, pulled...), left...), nil
}

func pend(w World, s State, c es.Command, p commands.Pend) ([]es.KeyedEvent, error) {
	if s.Stands() {
		return nil, es.Refuse(CodeStands, fmt.Sprintf("module %s stands on node %s", p.Module, p.Node), "unassign it first, or assign what it shall run")
	}
	run, err := tellable(w, p.Node, p.Module, request{ref: p.Reference, build: p.Build, reason: p.Reason})
	if err != nil {
		return nil, err
	}
	if s.Status == Pending && sameRun(s.Run(), run) {
		return nil, nil
	}
	return decision.Record(c.Ref, events.AssignmentPended{Told: run.told(p.Node, p.Module, p.Reason), State: events.StatePending}), nil
}

// backfillAssign adds to history that the node was told something once. What is forbidden or gone by now is no matter.
func backfillAssign(w World, c es.Command, p commands.Assign) ([]es.KeyedEvent, error) {
	run, _, err := request{ref: p.Reference, build: p.Build, commit: p.Commit, reason: p.Reason}.settle(w)
	if err != nil {
		return nil, err
	}
	told := run.told(p.Node, p.Module, p.Reason)
	told.Provisioning = p.Provisioning
	return []es.KeyedEvent{{Ref: c.Ref, Data: events.AssignmentAssigned{Told: told}, Backfill: true}}, nil
}

func backfillUnassign(c es.Command, p commands.Unassign) []es.KeyedEvent {
	return []es.KeyedEvent{{Ref: c.Ref, Data: events.AssignmentEnded{Node: p.Node, Module: p.Module, Reason: p.Reason}, Backfill: true}}
}

func notAssigned(node, module string) error {
	return es.Refuse(CodeNotAssigned, fmt.Sprintf("module %s was never assigned to node %s", module, node), "look at what the node has with get assignments")
}

func notStanding(node, module string) error {
	return es.Refuse(CodeNotStanding, fmt.Sprintf("module %s does not stand on node %s", module, node), "assign it where it shall stand")
}
