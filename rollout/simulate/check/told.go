package check

import (
	"reflect"

	"catenary/es"
	"catenary/events"
)

// once demands that a command leads to events once, all in one append.
func (j *judge) once(e es.Event) {
	if last, done := j.commands[e.Command.ID]; done && last != e.Sequence-1 {
		j.say("once", "command %s was done before, at event %d", e.Command.ID, last)
	}
}

// inAppend gives an event of the same append as the one that is judged, so many places away.
func (j *judge) inAppend(by int) (es.Event, bool) {
	at := j.at + by
	if at < 0 || at >= len(j.history.Events) || j.history.Events[at].Command.ID != j.history.Events[j.at].Command.ID {
		return es.Event{}, false
	}
	return j.history.Events[at], true
}

// tells gives what an event tells a node, and on behalf of which rollout.
func tells(e es.Event) (n events.StepName, v *events.Version, rollout string, ok bool) {
	switch f := e.Data.(type) {
	case events.AssignmentAssigned:
		v := &events.Version{Reference: f.Reference, Build: f.Build, Commit: f.Commit}
		return events.StepName{Node: f.Node, Module: f.Module}, v, f.Rollout, true
	case events.AssignmentEnded:
		return events.StepName{Node: f.Node, Module: f.Module}, nil, f.Rollout, true
	}
	return events.StepName{}, nil, "", false
}

// tellsAsPlanned demands that a begin and what its node is told are one append, and say the same.
func (j *judge) tellsAsPlanned(r *rollout, s *step, f events.RolloutStepBegun) {
	next, ok := j.inAppend(1)
	n, v, rollout, is := tells(next)
	switch {
	case !ok || !is || n != s.StepName:
		j.say("begin-tells", "%s of rollout %s begins, and its node is told nothing in the same append", s.StepName, r.id)
	case rollout != r.id:
		j.say("begin-tells", "%s of rollout %s begins, and its node is told on behalf of %q", s.StepName, r.id, rollout)
	case !same(v, s.After):
		j.say("told-as-planned", "%s of rollout %s is told %s, and planned is %s", s.StepName, r.id, say(v), say(s.After))
	case !reflect.DeepEqual(f.Inputs, inputs(next)):
		j.say("begin-tells", "%s of rollout %s begins with %v, and its node is handed %v", s.StepName, r.id, f.Inputs, inputs(next))
	}
}

// assigned demands that nothing is told on behalf of a rollout without a begin.
func (j *judge) assigned(e es.Event, node, module, rollout string) {
	if rollout == "" || !j.history.Engines[e.Command.Actor] {
		return
	}
	for by := -1; ; by-- {
		before, ok := j.inAppend(by)
		if !ok {
			j.say("told-by-begin", "%s on %s is told on behalf of rollout %s, and no step has begun", module, node, rollout)
			return
		}
		if _, begun := before.Data.(events.RolloutStepBegun); begun {
			return
		}
	}
}

// told demands that what reaches a node was recorded before, and never goes back.
func (j *judge) told() {
	newest := map[events.StepName]uint64{}
	for _, t := range j.history.Told {
		if t.Source == 0 || t.Source > uint64(len(j.history.Events)) {
			j.sayOf("recorded-before-told", "%s is told what no event says", t.StepName)
			continue
		}
		e := j.history.Events[t.Source-1]
		if n, _, _, ok := tells(e); !ok || n != t.StepName {
			j.sayOf("recorded-before-told", "%s is told by event %d, which says nothing of it", t.StepName, t.Source)
		}
		if t.At.Before(e.Recorded) {
			j.sayOf("recorded-before-told", "%s is told at %v what is recorded at %v", t.StepName, t.At, e.Recorded)
		}
		if t.Source < newest[t.StepName] {
			j.sayOf("told-forward", "%s is told of event %d after event %d", t.StepName, t.Source, newest[t.StepName])
		}
		newest[t.StepName] = t.Source
	}
}
