package check

import (
	"cmp"
	"maps"
	"slices"

	"catenary/es"
	"catenary/events"
)

// table is what others have handed on to a place, by the place that it comes from.
type table map[events.StepName]map[string]string

// hands is what a module on a node hands on and was handed.
type hands struct {
	// gives is what was last reported to hand on.
	gives map[string]string
	// told is what it was last handed; nil where nothing stands. brought says that the node has brought about what it was told with that. before is what
	// it was handed earlier: the last table that came with something brought about, and all since.
	told    table
	brought bool
	before  []table
}

func (m *model) handsOf(n events.StepName) *hands {
	if m.hands[n] == nil {
		m.hands[n] = &hands{before: []table{{}}}
	}
	return m.hands[n]
}

// seen gives the tables that the node may have, before it is told something more.
func (h *hands) seen() []table {
	switch {
	case h.told == nil:
		return h.before
	case h.brought:
		return []table{h.told}
	}
	return append(slices.Clone(h.before), h.told)
}

// hand takes in what is handed on, before the rest of an event is taken in.
func (m *model) hand(fact events.Assignment) {
	switch f := fact.(type) {
	case events.AssignmentAssigned:
		m.handsOf(events.StepName{Node: f.Node, Module: f.Module}).tell(f.Inputs)
	case events.AssignmentMovedIn:
		m.handsOf(events.StepName{Node: f.Node, Module: f.Module}).tell(f.Inputs)
	case events.AssignmentPended:
		m.handsOf(events.StepName{Node: f.Node, Module: f.Module}).end()
	case events.AssignmentEnded:
		m.handsOf(events.StepName{Node: f.Node, Module: f.Module}).end()
	case events.AssignmentMovedOut:
		m.handsOf(events.StepName{Node: f.Node, Module: f.Module}).end()
	case events.AssignmentApplied:
		if h := m.brings(f.Seen, true); h != nil && h.told != nil {
			h.gives = f.Outputs
		}
	case events.AssignmentApplyFailed:
		m.brings(f.Seen, false)
	case events.AssignmentHealthy:
		m.brings(f.Seen, true)
	case events.AssignmentUnhealthy:
		m.brings(f.Seen, true)
	case events.AssignmentRemoved:
		if h := m.brings(f.Seen, true); h != nil && m.place(events.StepName{Node: f.Node, Module: f.Module}).stands == nil {
			*h = hands{before: []table{{}}}
		}
	case events.AssignmentRemoveFailed:
		m.brings(f.Seen, true)
	case events.AssignmentDrifted:
		m.brings(f.Seen, true)
	}
}

func (h *hands) tell(inputs []events.Handed) {
	h.before = h.seen()
	h.told, h.brought = tableOf(inputs), false
}

// end lets nothing be handed any more. Until the node has done that it may have all of what it had.
func (h *hands) end() { *h = hands{before: append(h.seen(), table{})} }

// brings notes whether the node has brought about what it was told. It gives nil for a report about something else.
func (m *model) brings(s events.Seen, brought bool) *hands {
	n := events.StepName{Node: s.Node, Module: s.Module}
	if !m.place(n).about(s) {
		return nil
	}
	h := m.handsOf(n)
	h.brought = brought
	return h
}

func tableOf(inputs []events.Handed) table {
	t := table{}
	for _, i := range inputs {
		t[i.StepName] = i.Values
	}
	return t
}

// handed demands that a node is handed what those hand on that the module waits for, requires, or was handed something of before, and is told of all
// that it may have otherwise.
func (j *judge) handed(f events.Told) {
	n := events.StepName{Node: f.Node, Module: f.Module}
	h, due := j.handsOf(n), table{}
	for _, t := range h.seen() {
		for source := range t {
			due[source] = nil
		}
	}
	for source, values := range h.told {
		if len(values) > 0 {
			due[source] = j.handsOf(source).gives
		}
	}
	for module := range j.modules {
		if source := (events.StepName{Node: n.Node, Module: module}); j.requires(n.Module, module) {
			due[source] = j.handsOf(source).gives
		}
	}
	if s := j.begins(n); s != nil {
		for _, w := range s.WaitsFor {
			due[w.StepName] = j.handsOf(w.StepName).gives
		}
	} else if len(f.RequiredBy) > 0 && h.told != nil { // what was pulled in is told again when one more requires it, and is handed nothing new
		due = h.told
	}
	got := map[events.StepName]events.Handed{}
	for _, i := range f.Inputs {
		got[i.StepName] = i
	}
	for _, source := range slices.SortedFunc(maps.Keys(due), byName) {
		if is := got[source]; !maps.Equal(is.Values, due[source]) {
			j.say("handed", "%s is handed %v by %s, and that hands on %v", n, is.Values, source, due[source])
		} else if changed := h.changed(source, due[source]); !slices.Equal(is.Changed, changed) {
			j.say("handed", "%s is told that %v of %s have changed, and %v have", n, is.Changed, source, changed)
		}
		delete(got, source)
	}
	for source := range got {
		j.say("handed", "%s is handed something by %s, which it has nothing to do with", n, source)
	}
}

// begins gives the step for which a place is told something; nil for none.
func (j *judge) begins(n events.StepName) *step {
	before, ok := j.inAppend(-1)
	if f, begun := before.Data.(events.RolloutStepBegun); ok && begun && f.StepName == n {
		return j.of(before).step(n)
	}
	return nil
}

// changed names, in order, the values of which the node may have others.
func (h *hands) changed(from events.StepName, now map[string]string) []string {
	names := map[string]bool{}
	for _, t := range h.seen() {
		for _, name := range differing(t[from], now) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func byName(a, b events.StepName) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Module, b.Module))
}

// differing names the values that are not the same in two lists.
func differing(a, b map[string]string) []string {
	var names []string
	for name, value := range a {
		if other, there := b[name]; !there || other != value {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// handsOn demands that the end of a step says what its node has reported to hand on, and nothing else.
func (j *judge) handsOn(r *rollout, f events.RolloutStepEnded) {
	var gives map[string]string
	if f.Outcome == events.StepDone && (f.By == events.SettledByReport || f.By == events.SettledAlready) {
		gives = j.handsOf(f.StepName).gives
	}
	if !maps.Equal(f.Outputs, gives) {
		j.say("outputs", "%s of rollout %s ends and hands on %v, and its node has reported %v", f.StepName, r.id, f.Outputs, gives)
	}
}

// inputs gives what an event hands on to a node.
func inputs(e es.Event) []events.Handed {
	if f, ok := e.Data.(events.AssignmentAssigned); ok {
		return f.Inputs
	}
	return nil
}

// ran demands that a node that brings something about is told of each value that is another one than it has, whatever it has missed in between.
func (j *judge) ran() {
	has := map[events.StepName]table{}
	for _, t := range j.history.Ran {
		e := j.history.Events[t.Source-1]
		was, is, told := has[t.StepName], tableOf(inputs(e)), map[events.StepName][]string{}
		has[t.StepName] = is
		if _, v, _, _ := tells(e); v == nil {
			continue // it has nothing any more
		}
		from := map[events.StepName]bool{}
		for source := range was {
			from[source] = true
		}
		for _, i := range inputs(e) {
			from[i.StepName], told[i.StepName] = true, i.Changed
		}
		for _, source := range slices.SortedFunc(maps.Keys(from), byName) {
			for _, name := range differing(was[source], is[source]) {
				if !slices.Contains(told[source], name) {
					j.sayOf("handed-unsaid", "%s brings event %d about with another %s of %s, and is not told that it has changed", t.StepName, t.Source, name, source)
				}
			}
		}
	}
}
