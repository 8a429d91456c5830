package check

import "catenary/events"

// settled demands, of what stands when everything has had its time, that whatever does not move says why, and that this is so.
func (j *judge) settled() {
	if j.lease == 0 {
		j.sayOf("lease-held", "nobody walks")
	}
	for _, r := range j.order {
		for _, s := range r.steps {
			if s.phase == events.StepPending && r.status != paused {
				j.sayOf("stuck", "%s of rollout %s is under way since %v, and nothing ends it", s.StepName, r.id, s.begun)
			}
		}
		if r.status == planning && j.history.Engines[r.by] {
			j.sayOf("half-planned", "%s has begun to write rollout %s down, and nobody gives that up", r.by, r.id)
		}
		if r.status != final {
			j.reasoned(r)
		}
	}
	for _, w := range j.history.Tracks {
		j.idle(w)
	}
}

// reasoned demands that each open step of a rollout is named with a reason, and that at least one reason lies outside of the rollout.
func (j *judge) reasoned(r *rollout) {
	named, rooted := map[events.StepName]bool{}, false
	for _, w := range j.history.Waiting[r.id] {
		named[w.StepName] = true
		switch root, so := j.so(r, w); {
		case !so:
			j.sayOf("why-true", "%s of rollout %s (tier %q) is said to be held by %s, which is not so", w.StepName, r.id, w.Tier, w.Reason)
		case root:
			rooted = true
		}
	}
	if !rooted {
		j.sayOf("stuck", "rollout %s is %s, and waits for nobody and nothing: %+v", r.id, r.status, j.history.Waiting[r.id])
	}
	if r.status == planning {
		return
	}
	for _, s := range r.steps {
		if s.open() && !named[s.StepName] {
			j.sayOf("why-whole", "%s of rollout %s is %s, and nothing says why", s.StepName, r.id, s.phase)
		}
	}
}

// so says whether a reason is true, and whether it is one that only somebody from outside takes away.
func (j *judge) so(r *rollout, w Reason) (root, so bool) {
	s, p := r.step(w.StepName), j.place(w.StepName)
	switch w.Reason {
	case planning:
		return true, r.status == planning
	case queued:
		return true, r.status == queued
	case events.HoldPaused:
		return true, r.status == paused
	case events.HoldApproval:
		next := r.next()
		return true, next != nil && next.Approval && !next.approved
	case events.HoldTier:
		return false, !r.tier(s.Tier).entered
	case events.HoldDependency:
		for _, b := range s.WaitsFor {
			so = so || r.step(b.StepName).phase != events.StepDone
		}
		return false, so
	case events.HoldPending:
		return false, s.phase == events.StepPending
	case events.HoldStale:
		return true, !same(p.stands, s.Before)
	case events.HoldVetoed:
		return true, s.After != nil && j.vetoed[publication(s.After.Reference)]
	case events.HoldFrozen:
		for _, z := range j.freezes {
			so = so || j.holds(z, s.StepName, j.history.Settled)
		}
		return true, so
	case events.HoldSemaphore:
		return j.semaphore(r.tier(w.Tier))
	case events.HoldOffline:
		return true, j.isAway(s.Node, j.history.Settled)
	case events.HoldGate:
		for _, o := range r.of(w.Tier) {
			root = root || o.phase == events.StepDone && j.isAway(o.Node, j.history.Settled)
		}
		return root, true
	case "node-retired":
		n := j.nodes[s.Node]
		return true, n == nil || n.retired
	case "node-external":
		n := j.nodes[s.Node]
		return true, n != nil && n.external
	case "still-required":
		return true, s.After == nil
	}
	return false, true // it passes by itself, and can't be the last word
}

// semaphore says whether a tier has to wait for one of its semaphores, and whether that is held by what somebody has paused.
func (j *judge) semaphore(t *tier) (held, so bool) {
	for _, text := range t.Semaphores {
		id, count, err := events.ParseSemaphore(text)
		if err != nil || j.holding(id) < count {
			continue
		}
		so = true
		for _, r := range j.order {
			held = held || r.status == paused && r.holding(id) > 0
		}
	}
	return held, so
}

// ended demands that in the end, when all that stood in the way is gone, everything is at its end.
func (j *judge) ended() {
	for _, r := range j.order {
		if r.status != final {
			j.sayOf("stuck", "rollout %s is %s in the end", r.id, r.status)
		}
		if n := len(r.steps); r.status == final {
			for _, s := range r.steps {
				if s.phase == events.StepPending {
					j.sayOf("stuck", "%s of rollout %s, one of %d, is under way in the end", s.StepName, r.id, n)
				}
			}
		}
		if r.failed && r.begun && r.back == events.RollbackAutomatic && r.head.Reverts == "" && r.reverted == "" && j.history.Kept[r.id] == "" {
			j.sayOf("taken-back", "rollout %s has failed, and nobody takes it back", r.id)
		}
	}
}
