package walk

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// foldRollout folds a fact about a rollout. It mirrors what the writer keeps of it; where the two differ the writer refuses, and nothing
// worse comes of it.
func (s *State) foldRollout(e es.Event, fact events.Rollout) error {
	if f, ok := fact.(events.RolloutPlanning); ok {
		return s.begin(e, f)
	}
	id, err := es.UnescapeToken(e.Ref.Key)
	if err != nil {
		return err
	}
	r, ok := s.rollouts[id]
	if !ok {
		return s.foldFinal(id, fact)
	}
	r.dirty, r.version = true, e.Version
	if _, blocked := fact.(events.RolloutBlocked); !blocked {
		r.moved, r.said = e.Recorded.UnixNano(), ""
	}
	switch f := fact.(type) {
	case events.RolloutStepsPlanned:
		return s.plan(r, f)
	case events.RolloutPlanned:
		r.status = planned
		if f.Approval {
			r.status = waitingApproval
		}
	case events.RolloutApproved:
		r.approve(f.Tier)
	case events.RolloutStarted:
		s.answered(&r.asked)
		r.status = running
	case events.RolloutTierEntered:
		s.answered(&r.asked)
		if t, ok := r.tier(f.Tier); ok {
			r.entered = max(r.entered, t.place+1)
		}
	case events.RolloutStepBegun:
		return s.stepBegun(r, f, e.Recorded)
	case events.RolloutStepEnded:
		return s.stepEnded(r, f, e.Recorded)
	case events.RolloutStepRetried:
		return s.stepRetried(r, f)
	case events.RolloutPaused:
		r.status, r.pausedAt = paused, e.Recorded.UnixNano()
	case events.RolloutResumed:
		r.paused, r.pausedAt, r.status = r.pausedUntil(e.Recorded), 0, running
	case events.RolloutReverted:
		delete(s.failed, id)
	case events.RolloutBlocked:
		s.answered(&r.asked)
		r.said = digest(f.Holds)
	case events.RolloutFailed:
		if r.rollback && r.begun && r.reverts == "" {
			s.failed[id] = true
		}
		s.end(r, e.Recorded)
	case events.RolloutFinished:
		for key, m := range s.merges {
			if m.rollout == id {
				s.placed[key] = true
			}
		}
		s.end(r, e.Recorded)
	case events.RolloutAborted, events.RolloutSuperseded:
		s.end(r, e.Recorded)
	case events.RolloutPlanning:
	}
	return nil
}

// foldFinal folds a fact about a rollout that is not walked any more.
func (s *State) foldFinal(id string, fact events.Rollout) error {
	switch fact.(type) {
	case events.RolloutReverted:
		delete(s.failed, id)
		return nil
	case events.RolloutBlocked:
		return nil
	default:
		return errors.Newf("rollout %s is not under way", id)
	}
}

func (s *State) begin(e es.Event, f events.RolloutPlanning) error {
	parsed, err := events.ParseStrategy(f.Strategy)
	if err != nil {
		return err
	}
	ordered, err := parsed.Ordered()
	if err != nil {
		return err
	}
	r := &rollout{
		id: f.ID, version: e.Version, auto: s.engines[e.Command.Actor], rollback: parsed.Rollback == events.RollbackAutomatic, reverts: f.Reverts,
		steps: map[events.StepName]*step{}, moved: e.Recorded.UnixNano(),
	}
	for i, t := range ordered {
		r.tiers = append(r.tiers, newTier(i, t))
	}
	s.rollouts[r.id] = r
	s.order = append(s.order, r)
	return nil
}

func (s *State) plan(r *rollout, f events.RolloutStepsPlanned) error {
	for _, p := range f.Steps {
		t, ok := r.tier(p.Tier)
		if !ok {
			return errors.Newf("the strategy has no tier %q", p.Tier)
		}
		placeKey := es.Key(p.Node, p.Module)
		st := &step{
			name: p.StepName, rollout: r, tier: t, index: len(r.inOrder), attempt: p.Tried, spent: p.Tried, refresh: p.Refresh,
			before: s.version(p.Before), after: s.version(p.After),
			place: s.place(placeKey), node: s.node(es.Key(p.Node)), module: s.module(es.Key(p.Module)),
		}
		if p.After != nil && !p.After.IsZero() {
			st.publication = s.publication(commands.PublicationRef(p.After.Reference).Key)
		}
		for _, w := range p.WaitsFor {
			before, ok := r.steps[w.StepName]
			if !ok {
				return errors.Newf("%s waits for %s, which is not planned", p.StepName, w.StepName)
			}
			st.waitsFor, before.followers = append(st.waitsFor, before), append(before.followers, st)
		}
		st.left = len(st.waitsFor)
		t.steps++
		t.counts[waiting]++
		r.steps[st.name] = st
		r.inOrder = append(r.inOrder, st)
		st.place.steps = append(st.place.steps, st)
		if st.left == 0 {
			t.ready = append(t.ready, st) // it is the last in the order yet
		}
	}
	return nil
}

func (r *rollout) approve(name string) {
	t, ok := r.tier(name)
	if !ok {
		return
	}
	t.approved = true
	if first, ok := r.next(); r.status == waitingApproval && ok && first == t {
		r.status = planned
	}
}

func (s *State) stepBegun(r *rollout, f events.RolloutStepBegun, recorded time.Time) error {
	st, ok := r.steps[f.StepName]
	if !ok {
		return errors.Newf("%s is not planned", f.StepName)
	}
	s.change(st, pending)
	s.free(r, st) // what the begin has taken is the step's now
	st.hindrance = hindrance{}
	st.attempt, st.begun, st.paused = f.Attempt, recorded.UnixNano(), r.pausedUntil(recorded)
	st.tier.queue = append(st.tier.queue, attempt{step: st, number: st.attempt})
	if st.tier.limiter != nil {
		st.tier.limiter.ReserveN(recorded, 1)
	}
	r.begun = true
	return nil
}

func (s *State) stepEnded(r *rollout, f events.RolloutStepEnded, recorded time.Time) error {
	st, ok := r.steps[f.StepName]
	if !ok {
		return errors.Newf("%s is not planned", f.StepName)
	}
	to, ok := phaseOf(f.Outcome)
	if !ok {
		return errors.Newf("%s can't end as %q", f.StepName, f.Outcome)
	}
	if f.Again {
		to = waiting
	}
	s.free(r, st)
	st.hindrance = hindrance{}
	st.ended = recorded.UnixNano()
	if to == done {
		st.notified = 0 // only a try that is done has served them
	}
	if f.Outcome == events.StepFailed || f.Outcome == events.StepUnknown {
		st.spent++
	}
	s.change(st, to)
	st.tier.ended, st.tier.pausedThen = recorded.UnixNano(), r.pausedUntil(recorded)
	for _, n := range f.Notified {
		told, ok := r.steps[n]
		if !ok {
			return errors.Newf("%s can't tell %s, which is not planned", f.StepName, n)
		}
		told.notified++
	}
	if r.status == final {
		s.drop(r)
	}
	return nil
}

func (s *State) stepRetried(r *rollout, f events.RolloutStepRetried) error {
	st, ok := r.steps[f.StepName]
	if !ok {
		return errors.Newf("%s is not planned", f.StepName)
	}
	st.hindrance = hindrance{}
	st.spent, st.ended = 0, 0
	s.change(st, waiting)
	return nil
}

// change brings a step into another phase, and what waits for it along.
func (s *State) change(st *step, to phase) {
	t, from := st.tier, st.phase
	t.counts[from]--
	t.counts[to]++
	switch {
	case from == pending && to != pending:
		s.hold(t, -1)
	case from != pending && to == pending:
		s.hold(t, 1)
	}
	if from == waiting {
		t.remove(st)
	}
	st.phase = to
	if to == waiting {
		st.rollout.back(st)
	}
	if (from == done) == (to == done) {
		if to.ended() { // those that wait for it may never begin
			st.rollout.ends = append(st.rollout.ends, st.followers...)
		}
		return
	}
	for _, f := range st.followers {
		if to != done {
			f.left++
			f.tier.remove(f)
			continue
		}
		if f.left--; f.left == 0 && f.phase == waiting && f.asked.number == 0 {
			f.tier.insert(f)
		}
	}
}

// hold counts a step that is under way, and the semaphores it holds. Whoever waits for one that comes free is looked at again.
func (s *State) hold(t *tier, by int) {
	s.pending += by
	s.take(t, by)
	if by < 0 && len(t.semaphores) > 0 {
		s.touchAll()
	}
}

// take counts semaphores, in the order of their ids.
func (s *State) take(t *tier, by int) {
	for _, m := range t.semaphores {
		s.semaphores[m.id] += by
		if s.semaphores[m.id] == 0 {
			delete(s.semaphores, m.id)
		}
	}
}

// end makes a rollout final. What is pending stays to be settled.
func (s *State) end(r *rollout, at time.Time) {
	r.status, r.ended = final, at.UnixNano()
	s.answered(&r.asked)
	for _, st := range r.inOrder {
		if st.phase != pending {
			s.free(r, st)
			st.leave()
		}
	}
	s.planning = true
	s.drop(r)
}

// drop forgets a final rollout of which nothing is pending.
func (s *State) drop(r *rollout) {
	for _, t := range r.tiers {
		t.ready = nil
		if t.counts[pending] > 0 {
			return
		}
	}
	for _, st := range r.inOrder {
		s.free(r, st)
		st.leave()
	}
	delete(s.rollouts, r.id)
	s.order = slices.DeleteFunc(s.order, func(o *rollout) bool { return o == r })
}

// leave takes a step from its place.
func (st *step) leave() {
	st.place.steps = slices.DeleteFunc(st.place.steps, func(o *step) bool { return o == st })
}

// digest stands for what was said to block a rollout. When a limit lets the next step begin is no part of it: that is counted in fractions of
// nanoseconds, and comes out a little different each time. Nor is who holds a semaphore, which others change.
func digest(holds []events.Hold) string {
	holds = slices.Clone(holds)
	for i := range holds {
		switch holds[i].Reason {
		case events.HoldLimit:
			holds[i].Until = time.Time{}
		case events.HoldSemaphore:
			holds[i].WaitsFor = ""
		}
	}
	text, err := json.Marshal(holds)
	if err != nil {
		return ""
	}
	return string(text)
}
