package assignment

import (
	"fmt"
	"slices"

	"catenary/aggregates/decision"
	"catenary/aggregates/module"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// required is a module that must stand together with another.
type required struct {
	module string
	// by names the modules that require it, among those looked at.
	by []string
}

// requirements lists what a module requires, transitively, nearest first. Circles end where they began: the module itself is
// not listed.
func requirements(w World, moduleName string) []required {
	if len(w.Module(moduleName).Requires) == 0 {
		return nil
	}
	var list []required
	place := map[string]int{moduleName: -1}
	look := []string{moduleName}
	for len(look) > 0 {
		by := look[0]
		look = look[1:]
		for _, r := range w.Module(by).Requires {
			at, known := place[r]
			if !known {
				at = len(list)
				place[r] = at
				list = append(list, required{module: r})
				look = append(look, r)
			}
			if at >= 0 {
				list[at].by = append(list[at].by, by)
			}
		}
	}
	return list
}

// pullIn lets all that a module requires stand on the node with it. What stands for its own sake is left as it is; what was
// pulled in before learns who else requires it.
func pullIn(w World, node, moduleName, reason string) ([]es.KeyedEvent, error) {
	var facts []es.KeyedEvent
	for _, r := range requirements(w, moduleName) {
		if err := module.Known(r.module, w.Module(r.module)); err != nil {
			return nil, requiredBut(err, r)
		}
		s := w.Assignment(node, r.module)
		var told events.Told
		switch {
		case s.OwnSake():
			continue
		case s.Stands():
			told = s.told(node, r.module, reason)
			told.RequiredBy = union(s.RequiredBy(), r.by)
			if len(told.RequiredBy) == len(s.RequiredBy()) {
				continue
			}
		default:
			told = newest(w, r.module).told(node, r.module, reason)
			told.RequiredBy = union(nil, r.by)
			var err error
			if told.Inputs, err = handed(w, events.StepName{Node: node, Module: r.module}, nil); err != nil {
				return nil, err
			}
		}
		facts = append(facts, decision.Record(commands.AssignmentRef(node, r.module), events.AssignmentAssigned{Told: told})...)
	}
	return facts, nil
}

// requiredBut says of a refusal who requires what is refused.
func requiredBut(err error, r required) error {
	refusal, ok := err.(*es.Refusal)
	if !ok {
		return err
	}
	said := *refusal
	said.Message = fmt.Sprintf("%s, but %s requires it", said.Message, decision.Names(r.by, len(r.by)))
	return &said
}

// newest gives the module's newest publication that is not vetoed, or nothing: what is pulled in then waits for a reference.
func newest(w World, moduleName string) Run {
	ref, p, ok := w.Newest(moduleName)
	if !ok {
		return Run{}
	}
	return running(ref, p.Build, p.Commit)
}

// leave gives what happens to the other modules of a node when one leaves it: what was only pulled in by it ends, what others
// require too names it no more. It refuses while a module that stays requires it.
func leave(w World, node, leaving, reason string) ([]es.KeyedEvent, error) {
	n := standing(w, node)
	before := n.held(map[string]bool{leaving: true}, "")
	after := n.held(map[string]bool{}, leaving)
	if by := n.requiring(w, leaving, after); len(by) > 0 {
		return nil, es.Refuse(CodeStillRequired, fmt.Sprintf("module %s stays on node %s: %s, which stands there, requires it", leaving, node, decision.Names(by, len(by))),
			"unassign what requires it first, or change what that requires")
	}
	var facts []es.KeyedEvent
	for _, m := range n.modules {
		s := n.states[m]
		if m == leaving || !before[m] || s.OwnSake() {
			continue
		}
		ref := commands.AssignmentRef(node, m)
		if !after[m] {
			facts = append(facts, decision.Record(ref, events.AssignmentEnded{Node: node, Module: m, Reason: reason})...)
			continue
		}
		by := slices.DeleteFunc(slices.Clone(s.RequiredBy()), func(r string) bool { return !after[r] })
		if len(by) == 0 {
			by = n.requiring(w, m, after)
		}
		if !slices.Equal(by, s.RequiredBy()) {
			told := s.told(node, m, reason)
			told.RequiredBy = by
			facts = append(facts, decision.Record(ref, events.AssignmentAssigned{Told: told})...)
		}
	}
	return facts, nil
}

// onNode is what stands on one node.
type onNode struct {
	modules []string
	states  map[string]State
	// requires is what each of the modules requires now.
	requires map[string][]string
}

func standing(w World, node string) onNode {
	n := onNode{modules: w.StandingOn(node), states: map[string]State{}, requires: map[string][]string{}}
	for _, m := range n.modules {
		n.states[m], n.requires[m] = w.Assignment(node, m), w.Module(m).Requires
	}
	return n
}

// held gives the modules that have a reason to stand: those that stand for their own sake and the given ones, all but the
// one without, and whatever is required by one that is held. Pulled-in modules that only hold each other up in a circle are
// not held.
func (n onNode) held(held map[string]bool, without string) map[string]bool {
	pulledBy := map[string][]string{}
	var look []string
	for _, m := range n.modules {
		if m == without {
			continue
		}
		if n.states[m].OwnSake() {
			held[m] = true
		}
		for _, by := range n.states[m].RequiredBy() {
			pulledBy[by] = append(pulledBy[by], m)
		}
		if held[m] {
			look = append(look, m)
		}
	}
	for len(look) > 0 {
		by := look[0]
		look = look[1:]
		for _, m := range slices.Concat(pulledBy[by], n.requires[by]) {
			if _, stands := n.states[m]; stands && m != without && !held[m] {
				held[m] = true
				look = append(look, m)
			}
		}
	}
	return held
}

// requiring gives, in order, the held modules that require the module now.
func (n onNode) requiring(w World, moduleName string, held map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(w.Requirers(moduleName)), func(r string) bool { return r == moduleName || !held[r] })
}

// union gives both lists as one, in order and without repeats.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
