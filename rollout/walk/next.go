package walk

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Next gives the actions that are due at a moment, which count as under way from then on, and when to look again though nothing happens;
// the zero time for never. It looks only at what has changed and at what has come to its time.
func (s *State) Next(now time.Time) (due []Action, again time.Time) {
	l := look{State: s, now: now}
	for _, r := range s.order {
		if r.dirty || !r.wake.IsZero() && !now.Before(r.wake) {
			r.dirty, r.wake = false, time.Time{}
			l.walk(r)
		}
		again = earlier(again, r.wake)
	}
	return l.merges(), earlier(again, l.wake)
}

// earlier gives the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// look is one look at the state.
type look struct {
	*State
	now time.Time
	due []Action
	// wake is when to look again at what is no rollout.
	wake time.Time

	frosty  []frost
	frosted bool
	// judging says that a step of the present rollout is about to end badly: whether others may begin is judged first.
	judging bool
}

// room says whether another command may be under way.
func (l *look) room() bool { return l.inFlight < l.window }

// again lets a rollout be looked at at a moment.
func (l *look) again(r *rollout, at time.Time) {
	r.wake = earlier(r.wake, at)
}

func (l *look) frosts() []frost {
	if !l.frosted {
		l.frosty, l.frosted = l.State.frosts(l.now), true
	}
	return l.frosty
}

// walk looks at a rollout.
func (l *look) walk(r *rollout) {
	before := len(l.due)
	l.judging = false
	l.ends(r)
	if r.status != final {
		l.deadlines(r)
	} else {
		l.lateDeadlines(r)
	}
	if l.draining {
		return
	}
	switch {
	case r.status == planned && r.auto:
		l.whole(r, commands.StartRollout{ID: r.id, Reason: "planned by the engine"})
	case r.status == running:
		l.begins(r)
		l.onward(r)
		if len(l.due) == before {
			l.still(r)
		}
	}
}

// whole asks for what is about a rollout as a whole: one thing at a time.
func (l *look) whole(r *rollout, payload es.Payload) {
	switch {
	case r.asked.number != 0:
	case r.hindrance.holds(l.now):
		l.again(r, r.hindrance.ends())
	case !l.room():
		r.dirty = true
	default:
		a := l.ask(r, payload)
		r.asked = asked{number: a.number}
		l.due = append(l.due, a)
	}
}

// step asks for something of a step, and says whether it did.
func (l *look) step(r *rollout, st *step, payload es.Payload, begins bool) bool {
	switch {
	case st.asked.number != 0:
		return true
	case st.hindrance.holds(l.now):
		l.again(r, st.hindrance.ends())
		return false
	case !l.room():
		r.dirty = true
		return false
	}
	if end, ok := payload.(commands.EndStep); ok && (end.Outcome == events.StepFailed || end.Outcome == events.StepUnknown) {
		l.judging = true
	}
	l.due = append(l.due, l.askStep(r, st, payload, begins))
	return true
}

// ends looks at the steps that may come to an end: those whose node has reported, and those that will never begin.
func (l *look) ends(r *rollout) {
	slices.SortFunc(r.ends, func(a, b *step) int { return cmp.Compare(a.index, b.index) })
	list := slices.Compact(r.ends)
	r.ends = list[:0]
	for _, st := range list {
		result, due := l.ending(r, st)
		early := st.phase == waiting && st.tier.place >= r.entered
		if early || due && !l.step(r, st, endStep(r, st, result), false) {
			r.ends = append(r.ends, st)
		}
	}
	clear(list[len(r.ends):])
}

// ending gives the outcome of a step that is at its end, though no time has come.
func (l *look) ending(r *rollout, st *step) (events.StepResult, bool) {
	if st.phase == pending {
		return st.conclusion()
	}
	if st.phase != waiting || r.status == final || st.tier.place >= r.entered {
		return events.StepResult{}, false
	}
	if w, is := st.hopeless(); is {
		return events.StepResult{Outcome: events.StepSkipped, Reason: fmt.Sprintf("it waits for %s, which is %s", w.name, w.phase)}, true
	}
	return events.StepResult{}, false
}

// deadlines ends the steps whose time is over. They are in the order in which that comes.
func (l *look) deadlines(r *rollout) {
	if r.status == paused {
		return // the time stands still
	}
	for _, t := range r.tiers {
		for i := 0; i < len(t.queue); i++ {
			q := t.queue[i]
			if q.step.phase != pending || q.step.attempt != q.number {
				if i == 0 {
					t.queue, i = t.queue[1:], -1
				}
				continue
			}
			deadline := r.deadline(q.step, l.now)
			if l.now.Before(deadline) {
				l.again(r, deadline)
				break
			}
			l.expire(r, q.step)
		}
	}
}

// lateDeadlines does the same for a final rollout, whose pending steps are few.
func (l *look) lateDeadlines(r *rollout) {
	for _, st := range r.inOrder {
		if st.phase != pending {
			continue
		}
		if deadline := r.deadline(st, l.now); l.now.Before(deadline) {
			l.again(r, deadline)
		} else {
			l.expire(r, st)
		}
	}
}

func (l *look) expire(r *rollout, st *step) {
	if _, reported := st.conclusion(); !reported {
		l.step(r, st, endStep(r, st, events.StepResult{Outcome: events.StepUnknown, Reason: "no report in time"}), false)
	}
}

// begins looks at the steps that wait for nothing but their turn.
func (l *look) begins(r *rollout) {
	for _, t := range r.tiers[:r.entered] {
		if len(t.ready) == 0 {
			continue
		}
		t.ready = l.beginReady(r, t.ready)
	}
}

// beginReady asks for the steps of a list whose turn it is, and gives those that stay in it. It moves none that it has not looked at: many may
// wait for one that ends.
func (l *look) beginReady(r *rollout, ready []*step) []*step {
	kept := ready[:0]
	for i, st := range ready {
		if !l.room() || l.judging {
			r.dirty = r.dirty || !l.judging // else its end leads to another look
			return rest(ready, kept, i)
		}
		v := l.consider(st)
		if !v.due.IsZero() {
			l.again(r, v.due)
		}
		if v.payload != nil && l.step(r, st, v.payload, v.begins) {
			continue // it comes back when that is refused
		}
		if v.wholeTier {
			return rest(ready, kept, i)
		}
		kept = append(kept, st)
	}
	clear(ready[len(kept):])
	return kept
}

// rest gives those that are kept of the first i of a list, and all behind them.
func rest(list, kept []*step, i int) []*step {
	switch len(kept) {
	case i:
		return list
	case 0:
		return list[i:]
	}
	return append(kept, list[i:]...)
}

// onward asks for what follows when the present tier is through, where the writer does not see to that by itself: time has passed, health
// was reported, nodes are away, somebody has approved or resumed.
func (l *look) onward(r *rollout) {
	if r.entered == 0 || r.asking > 0 {
		return
	}
	v := l.through(r)
	if !v.due.IsZero() {
		l.again(r, v.due)
	}
	if v.payload != nil {
		l.whole(r, v.payload)
	}
}

// stillAfter is how long nothing of a rollout moves before it is recorded why: what passes by itself meanwhile is not worth an event.
const stillAfter = 5 * time.Second

// still records why nothing of a rollout moves.
func (l *look) still(r *rollout) {
	if r.asking > 0 || r.asked.number != 0 || slices.ContainsFunc(r.tiers, func(t *tier) bool { return t.counts[pending] > 0 }) {
		return
	}
	if from := time.Unix(0, r.moved).Add(stillAfter); l.now.Before(from) {
		l.again(r, from)
		return
	}
	holds := summed(l.blocked(r))
	if len(holds) > 0 && digest(holds) != r.said {
		l.whole(r, commands.BlockRollout{ID: r.id, Holds: holds})
	}
}

// merges releases those that their rollout has brought to their place, and gives all that is due.
func (l *look) merges() []Action {
	for _, key := range slices.Sorted(maps.Keys(l.placed)) {
		m := l.State.merges[key]
		switch {
		case m.asked.number != 0 || l.draining:
		case m.hindrance.holds(l.now):
			l.wake = earlier(l.wake, m.hindrance.ends())
		case l.room():
			m.Placed, m.Reason = true, "rollout "+m.rollout+" has finished"
			a := l.ask(nil, m.ReleaseMerge)
			a.Expected = m.version // it is another rollout's to place when that has taken it meanwhile
			m.asked = asked{number: a.number}
			l.due = append(l.due, a)
		}
	}
	return l.due
}
