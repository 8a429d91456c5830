package assignment

import (
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Tell gives what happens when a rollout tells a node to run a version of a module, after the steps that it waits for. What the node was handed
// besides, and for whose sake the module stands, stays as it is. It is refused like any assignment, and for a vetoed publication whatever
// the reason.
func Tell(w World, n events.StepName, v events.Version, rollout, reason string, waits []events.WaitFor) ([]es.KeyedEvent, error) {
	run, err := tellable(w, n.Node, n.Module, request{ref: v.Reference, build: v.Build, commit: v.Commit})
	if err != nil {
		return nil, err
	}
	run.Rollout = rollout
	told := run.told(n.Node, n.Module, reason)
	if s := w.Assignment(n.Node, n.Module); s.Stands() {
		told.RequiredBy, told.Provisioning = s.RequiredBy(), s.Provisioning()
	}
	if told.Inputs, err = handed(w, n, waits); err != nil {
		return nil, err
	}
	facts := decision.Record(commands.AssignmentRef(n.Node, n.Module), events.AssignmentAssigned{Told: told})
	pulled, err := pullIn(w, n.Node, n.Module, reason)
	return append(facts, pulled...), err
}

// End gives what happens when a rollout tells a node to run a module no more. It is refused like any unassignment.
func End(w World, n events.StepName, rollout, reason string) ([]es.KeyedEvent, error) {
	facts := decision.Record(commands.AssignmentRef(n.Node, n.Module), events.AssignmentEnded{
		Node: n.Node, Module: n.Module, Rollout: rollout, Reason: reason,
	})
	left, err := leave(w, n.Node, n.Module, reason)
	return append(facts, left...), err
}
