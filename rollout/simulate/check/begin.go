package check

import (
	"maps"
	"slices"
	"time"

	"catenary/es"
	"catenary/events"
)

// begun holds the begin of a step to everything that a begin has to be held to.
func (j *judge) begun(e es.Event, r *rollout, f events.RolloutStepBegun) {
	s, t := r.step(f.StepName), r.tier(f.Tier)
	if r.status != running {
		j.say("begin-running", "%s begins in rollout %s, which is %s", s.StepName, r.id, r.status)
	}
	if s.phase != events.StepWaiting {
		j.say("begin-once", "%s of rollout %s begins, and is %s", s.StepName, r.id, s.phase)
	}
	if f.Attempt != s.attempt+1 {
		j.say("begin-once", "%s of rollout %s begins as try %d after try %d", s.StepName, r.id, f.Attempt, s.attempt)
	}
	if s.Tier != f.Tier || !t.entered {
		j.say("begin-entered", "%s of rollout %s begins, and tier %s is not entered", s.StepName, r.id, f.Tier)
	}
	for _, w := range s.WaitsFor {
		if before := r.step(w.StepName); before.phase != events.StepDone {
			j.say("begin-dependency", "%s of rollout %s begins, and %s is %s", s.StepName, r.id, w.StepName, before.phase)
		}
	}
	if s.spent > 0 && !s.ended.IsZero() && e.Recorded.Before(s.ended.Add(t.RetryDelay())) {
		j.say("begin-delay", "%s of rollout %s begins %v after it failed, and tier %s waits %v", s.StepName, r.id, e.Recorded.Sub(s.ended), t.Name, t.RetryDelay())
	}
	j.standing(r, s)
	j.ordered(r, s)
	j.bounded(r, t)
	j.limited(e, r, t)
	j.allowed(e, r, s)
	j.refreshed(r, s, f)
	j.tellsAsPlanned(r, s, f)
}

// standing demands that what stands is what the plan was made on, or what an earlier try of this rollout has told.
func (j *judge) standing(r *rollout, s *step) {
	p := j.place(s.StepName)
	if again := p.rollout == r.id && same(p.stands, s.After); !again && !same(p.stands, s.Before) {
		j.say("before-reference", "%s of rollout %s begins at %s, and the plan was made for %s", s.StepName, r.id, say(p.stands), say(s.Before))
	}
	switch n := j.nodes[s.Node]; {
	case n == nil || n.retired:
		j.say("begin-node", "%s of rollout %s begins, and its node is not there", s.StepName, r.id)
	case n.external:
		j.say("begin-node", "%s of rollout %s begins, and somebody else manages its node", s.StepName, r.id)
	}
}

// bounded demands that no more is under way than may be, and that nothing begins when too much has failed.
func (j *judge) bounded(r *rollout, t *tier) {
	most := len(r.of(t.Name))
	if !t.Concurrency.IsZero() {
		most = max(1, t.Concurrency.Of(most))
	}
	if n := r.count(t.Name, events.StepPending) + 1; n > most {
		j.say("concurrency", "%d steps of tier %s of rollout %s are under way, and %d may be", n, t.Name, r.id, most)
	}
	for _, other := range r.tiers {
		if n := r.bad(other.Name); other.entered && n > r.budget(other) {
			j.say("failure-budget", "a step of rollout %s begins, and %d of tier %s have failed where %d may", r.id, n, other.Name, r.budget(other))
		}
	}
	for _, text := range t.Semaphores {
		id, count, err := events.ParseSemaphore(text)
		if err != nil {
			j.say("semaphore", "%q of tier %s is none", text, t.Name)
			continue
		}
		if n := j.holding(id) + 1; n > count {
			j.say("semaphore", "%d steps hold semaphore %s, and %d may", n, id, count)
		}
	}
}

// holding counts the steps under way that hold a semaphore, of all rollouts.
func (m *model) holding(semaphore string) (n int) {
	for _, r := range m.order {
		n += r.holding(semaphore)
	}
	return n
}

func (r *rollout) holding(semaphore string) (n int) {
	for _, t := range r.tiers {
		for _, text := range t.Semaphores {
			if id, _, err := events.ParseSemaphore(text); err == nil && id == semaphore {
				n += r.count(t.Name, events.StepPending)
			}
		}
	}
	return n
}

// allowed demands that no freeze holds, and that what is told is not vetoed.
func (j *judge) allowed(e es.Event, r *rollout, s *step) {
	for _, name := range slices.Sorted(maps.Keys(j.freezes)) {
		if j.holds(j.freezes[name], s.StepName, e.Recorded) {
			j.say("frozen", "%s of rollout %s begins, and freeze %s holds", s.StepName, r.id, name)
		}
	}
	if s.After != nil && j.vetoed[publication(s.After.Reference)] {
		j.say("vetoed", "%s of rollout %s begins, and %s is vetoed", s.StepName, r.id, say(s.After))
	}
}

// holds says whether a freeze holds for a place at a moment.
func (m *model) holds(z *freeze, n events.StepName, at time.Time) bool {
	var labels map[string]string
	if known := m.nodes[n.Node]; known != nil {
		labels = known.labels
	}
	var kinds map[string]string
	if known := m.modules[n.Module]; known != nil {
		kinds = known.labels
	}
	return z.broken || z.selector.Picks(n, labels, kinds) && (z.schedule == nil || z.schedule.Holds(at))
}

// publication gives the key under which something is published.
func publication(r events.Reference) string {
	if r.Package != nil {
		return es.Key(r.Package.Name, r.Package.Version)
	}
	return es.Key(r.Artifact)
}

// refreshed demands that a try serves just the notifications that are owed.
func (j *judge) refreshed(r *rollout, s *step, f events.RolloutStepBegun) {
	if f.Refresh != s.notified {
		j.say("notified", "%s of rollout %s serves %d notifications, and is owed %d", s.StepName, r.id, f.Refresh, s.notified)
	}
	if s.Refresh && s.notified == 0 {
		j.say("notified", "%s of rollout %s begins, and nothing has changed", s.StepName, r.id)
	}
}
