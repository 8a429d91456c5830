package assignment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// handed gives what a module on a node is handed when it is told something: what was last reported by the steps it waits for, by what it
// requires on the node, and by those that it was handed something of before. It refuses what is too much.
func handed(w World, n events.StepName, waits []events.WaitFor) ([]events.Handed, error) {
	before := w.Assignment(n.Node, n.Module).inputs()
	var now []events.Handed
	for _, from := range sources(w, n, waits, before) {
		now = append(now, events.Handed{StepName: from, Values: w.Assignment(from.Node, from.Module).Outputs()})
	}
	list := pass(before, now)
	if len(list) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(list)
	if err == nil && len(text) > commands.MaxInputsBytes {
		err = es.Refuse(CodeInputsTooLarge, fmt.Sprintf("%s would be handed %d bytes by %d others: the limit is %d", n, len(text), len(list), commands.MaxInputsBytes),
			"let what it waits for hand on less: keep what is large elsewhere and hand on where it is")
	}
	return list, err
}

// pass gives the values that are handed on now, to a node that may have those before.
func pass(before, now []events.Handed) []events.Handed {
	var names []events.StepName
	for _, h := range slices.Concat(before, now) {
		names = append(names, h.StepName)
	}
	var list []events.Handed
	for _, from := range inOrder(names) {
		h := events.Handed{StepName: from, Values: of(now, from).Values}
		if h.Changed = changed(of(before, from), h.Values); len(h.Values) > 0 || len(h.Changed) > 0 {
			list = append(list, h)
		}
	}
	return list
}

// sources lists those that hand something on to a module on a node, in order.
func sources(w World, n events.StepName, waits []events.WaitFor, before []events.Handed) []events.StepName {
	var list []events.StepName
	for _, wait := range waits {
		list = append(list, wait.StepName)
	}
	for _, r := range requirements(w, n.Module) {
		list = append(list, events.StepName{Node: n.Node, Module: r.module})
	}
	for _, h := range before {
		if len(h.Values) > 0 {
			list = append(list, h.StepName)
		}
	}
	return inOrder(list)
}

func inOrder(list []events.StepName) []events.StepName {
	slices.SortFunc(list, func(a, b events.StepName) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Module, b.Module))
	})
	return slices.Compact(list)
}

func of(list []events.Handed, from events.StepName) events.Handed {
	if at := slices.IndexFunc(list, func(h events.Handed) bool { return h.StepName == from }); at >= 0 {
		return list[at]
	}
	return events.Handed{}
}

// changed names the values that differ from those handed last, or that were handed last as changed and have not come to the node.
func changed(last events.Handed, values map[string]string) []string {
	names := slices.Clone(last.Changed)
	for name, value := range values {
		if was, there := last.Values[name]; !there || was != value {
			names = append(names, name)
		}
	}
	for name := range last.Values {
		if _, there := values[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inputs gives what the node may have of what it was handed. Once it has brought about what it was told, nothing of that has changed any more.
func (s State) inputs() []events.Handed {
	if s.extra == nil {
		return nil
	}
	if !s.Stands() || s.report == Silent || s.report == ApplyFailed {
		return s.extra.inputs
	}
	var list []events.Handed
	for _, h := range s.extra.inputs {
		if h.Changed = nil; len(h.Values) > 0 {
			list = append(list, h)
		}
	}
	return list
}

// gone gives what is left of inputs when a module is not to run any more: as long as the node has not said that it does not, it may have any of them.
func gone(list []events.Handed) []events.Handed {
	list = slices.Clone(list)
	for i, h := range list {
		list[i] = events.Handed{StepName: h.StepName, Changed: changed(h, nil)}
	}
	return list
}
