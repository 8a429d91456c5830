package assignments

import (
	"bytes"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
	"catenary/projections/perkey"
)

// told gives the standing record of what a node is told. The module came to the node now, unless it stands there already;
// what it is told is told since now, unless it is told just the same for other modules' sake.
func told(before *chain.Assignment, t events.Told, e es.Event) chain.Assignment {
	a := record(before, t, e)
	a.Assigned = a.Since
	if before != nil && before.Stands() {
		a.Assigned = before.Assigned
		if same(*before, a) {
			a.Since = before.Since
		}
	}
	return a
}

// pended gives the record of what a node is not told yet. The module has not come to the node.
func pended(before *chain.Assignment, p events.AssignmentPended, e es.Event) chain.Assignment {
	a := record(before, p.Told, e)
	a.State = p.State
	if a.State == "" {
		a.State = events.StatePending
	}
	return a
}

// record gives what was told as it stands in a record. What the node last reported is as true as before.
func record(before *chain.Assignment, t events.Told, e es.Event) chain.Assignment {
	a := chain.Assignment{
		Node: t.Node, Module: t.Module, RequiredBy: t.RequiredBy, Provisioning: t.Provisioning, Build: t.Build,
		Reference: t.Reference, Commit: t.Commit, Rollout: t.Rollout, Since: e.Effective.UTC(), Told: e.Sequence, Inputs: t.Inputs,
	}
	if before != nil {
		a.Observed = before.Observed
	}
	return a
}

// same says whether a node has nothing to do between the two.
func same(a, b chain.Assignment) bool {
	return a.Reference.Equal(b.Reference) && a.Build == b.Build && a.Commit == b.Commit && a.Rollout == b.Rollout &&
		bytes.Equal(a.Provisioning, b.Provisioning) && events.SameInputs(a.Inputs, b.Inputs)
}

// ended gives the record of a module that the node was told to run no more, or that went over to another node.
func ended(before *chain.Assignment, e es.Event) (chain.Assignment, error) {
	if before == nil {
		return chain.Assignment{}, perkey.Untold(e)
	}
	before.State, before.Ended, before.Told = "", e.Effective.UTC(), e.Sequence
	return *before, nil
}
