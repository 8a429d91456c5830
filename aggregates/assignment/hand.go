package assignment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// handed gives what a module on a node is handed when it is told something: what was last reported by the steps it waits for, by what it
// requires on the node, and by those that it was handed something of before. It refuses what is too much.
func handed(w World, n events.StepName, waits []events.WaitFor) ([]events.Handed, error) {
	before := w.Assignment(n.Node, n.Module).inputs()
	var list []events.Handed
	for _, from := range sources(w, n, waits, before) {
		last := of(before, from)
		h := events.Handed{StepName: from, Values: w.Assignment(from.Node, from.Module).Outputs()}
		h.Changed = changed(last, h.Values)
		if len(h.Values) == 0 && len(h.Changed) == 0 {
			continue
		}
		list = append(list, h)
	}
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
		list = append(list, h.StepName)
	}
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

// inputs gives what the node was handed with what it is told. Once it has brought that about, nothing of it has changed any more.
func (s State) inputs() []events.Handed {
	if s.extra == nil || !s.Stands() {
		return nil
	}
	if s.report == Silent || s.report == ApplyFailed {
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

// allChanged gives inputs for a node that was never handed them.
func allChanged(list []events.Handed) []events.Handed {
	list = slices.Clone(list)
	for i := range list {
		list[i].Changed = slices.Sorted(maps.Keys(list[i].Values))
	}
	return list
}
