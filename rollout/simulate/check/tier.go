package check

import (
	"fmt"

	"catenary/es"
	"catenary/events"
)

// final demands that nothing changes a rollout that is final, but for what is pending.
func (j *judge) final(r *rollout, fact events.Rollout) {
	if r.status != final {
		return
	}
	if _, back := fact.(events.RolloutReverted); back {
		return
	}
	if f, ended := fact.(events.RolloutStepEnded); ended && r.step(f.StepName).phase == events.StepPending {
		return
	}
	j.say("final", "rollout %s is final, and %T follows", r.id, fact)
}

// blocked demands that the same is not said again while nothing moves.
func (j *judge) blocked(r *rollout, f events.RolloutBlocked) {
	if said := words(f); said == r.said {
		j.say("said-once", "rollout %s is said to be blocked as before: %s", r.id, said)
	}
}

// words gives what is said, but for when it ends: a freeze that is declared anew ends at another time.
func words(f events.RolloutBlocked) string {
	text := ""
	for _, h := range f.Holds {
		text += fmt.Sprintf("%s %s %v %d %s; ", h.Reason, h.Tier, h.Steps, h.Count, h.WaitsFor)
		if h.Reason == events.HoldFrozen {
			text += h.Until.String()
		}
	}
	return text
}

// entered demands that a tier is entered in its turn, when the one before is through.
func (j *judge) entered(e es.Event, r *rollout, f events.RolloutTierEntered) {
	next := r.next()
	switch {
	case r.status != running:
		j.say("tier-running", "tier %s of rollout %s is entered, and that is %s", f.Tier, r.id, r.status)
	case next == nil || next.Name != f.Tier:
		j.say("tier-order", "tier %s of rollout %s is entered out of its turn", f.Tier, r.id)
	case next.Approval && !next.approved:
		j.say("tier-approved", "tier %s of rollout %s is entered, and nobody has approved that", f.Tier, r.id)
	}
	open := map[events.StepName]bool{}
	for _, n := range f.Open {
		open[n] = true
	}
	j.through(e, r, open)
}

func (j *judge) finished(e es.Event, r *rollout) {
	if r.next() != nil {
		j.say("tier-order", "rollout %s finishes, and tier %s is not entered", r.id, r.next().Name)
	}
	j.through(e, r, nil)
}

// through demands that the tiers that were entered are through: each step has an outcome or is left open by the policy, no more has failed
// than may, and the last of them has stayed well for long enough.
func (j *judge) through(e es.Event, r *rollout, open map[events.StepName]bool) {
	for _, t := range r.tiers {
		if !t.entered {
			continue
		}
		for _, s := range r.of(t.Name) {
			if left := open[s.StepName] && (t.Offline == "" || t.Offline == events.OfflineWait) && j.wasAway(s.Node, e.Recorded); s.open() && !left {
				j.say("tier-through", "rollout %s goes on from tier %s, and %s is %s", r.id, t.Name, s.StepName, s.phase)
			}
		}
		if n := r.bad(t.Name); n > r.budget(t) {
			j.say("failure-budget", "rollout %s goes on from tier %s, and %d have failed where %d may", r.id, t.Name, n, r.budget(t))
		}
	}
	t := r.present()
	if t == nil {
		return
	}
	if stayed := r.active(t.last, e.Recorded); !t.last.IsZero() && stayed < t.BakeTime() {
		j.say("bake", "rollout %s goes on from tier %s after %v, and it bakes for %v", r.id, t.Name, stayed, t.BakeTime())
	}
	if t.Gate != events.GateHealthy {
		return
	}
	for _, s := range r.of(t.Name) {
		if p := j.place(s.StepName); s.phase == events.StepDone && s.After != nil && p.rollout == r.id && p.said != saidHealthy && p.said != saidFailed {
			j.say("gate", "rollout %s goes on from tier %s, and %s is not reported healthy on its behalf", r.id, t.Name, s.StepName)
		}
	}
	if n := r.bad(t.Name) + j.unwell(r, t); n > r.budget(t) {
		j.say("gate", "rollout %s goes on from tier %s, and %d have failed or are not well where %d may", r.id, t.Name, n, r.budget(t))
	}
}

// unwell counts the steps of a tier that are done, and whose nodes have said since that something is wrong.
func (j *judge) unwell(r *rollout, t *tier) (n int) {
	for _, s := range r.of(t.Name) {
		if p := j.place(s.StepName); s.phase == events.StepDone && s.After != nil && p.rollout == r.id && p.said == saidFailed {
			n++
		}
	}
	return n
}

// failed demands that a rollout fails only when too much has failed.
func (j *judge) failed(r *rollout) {
	for _, t := range r.tiers {
		if t.entered && r.bad(t.Name) > r.budget(t) {
			return
		}
	}
	if t := r.present(); t != nil && (t.Gate == events.GateHealthy || t.BakeTime() > 0) && r.bad(t.Name)+j.unwell(r, t) > r.budget(t) {
		return
	}
	j.say("failed", "rollout %s fails, and no more has failed than may", r.id)
}
