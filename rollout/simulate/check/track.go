package check

import (
	"slices"

	"catenary/es"
	"catenary/events"
)

// planning demands of what an engine plans for a track that this plans by itself, and has nothing under way.
func (j *judge) planning(e es.Event, f events.RolloutPlanning) {
	if f.Track == "" || !j.history.Engines[e.Command.Actor] {
		return
	}
	t := j.tracks[f.Track]
	switch {
	case t == nil || !t.stands:
		j.say("track-stands", "rollout %s is planned for track %s, which is none", f.ID, f.Track)
		return
	case t.On == events.OnManual && e.Recorded.Sub(t.since) > j.history.Late:
		j.say("track-manual", "rollout %s is planned for track %s, and nobody has asked", f.ID, f.Track)
	}
	for _, o := range j.order {
		if o.head.Track == f.Track && o.status != final && j.history.Engines[o.by] {
			j.say("track-one", "rollout %s is planned for track %s, and rollout %s is %s", f.ID, f.Track, o.id, o.status)
		}
	}
}

// carried demands of a plan for a track on merges that it carries the newest merge of those that go with it, that it does not lead back, and that its
// merges know of it by the time it is one.
func (j *judge) carried(e es.Event) {
	r := j.of(e)
	if r == nil || r.head.Track == "" || j.tracks[r.head.Track] == nil {
		return
	}
	taken, alone := 0, false
	for _, m := range j.heard {
		if m.rollout == r.id {
			taken, alone = taken+1, alone || m.Alone
		}
	}
	if alone && taken > 1 {
		j.say("merge-alone", "rollout %s carries %d merges, and one of them goes alone", r.id, taken)
	}
	if j.history.Engines[r.by] {
		j.leaves(r)
	}
	if t := j.tracks[r.head.Track]; t.On != events.OnMerge || r.planned.Sub(t.since) < j.history.Late || !j.history.Engines[r.by] {
		return
	}
	for _, target := range r.head.Targets {
		repository := j.modules[target.Module].repository
		carried := j.merge(repository, target.Commit)
		if carried == nil {
			j.say("merge-carried", "rollout %s of track %s carries %s, which no merge has brought", r.id, r.head.Track, target.Version)
			continue
		}
		for _, m := range j.waiting(repository) {
			before := !m.Merged.After(carried.Merged) && r.planned.Sub(m.at) > j.history.Late
			if before && m.rollout != r.id {
				j.say("merge-own", "rollout %s carries commit %s of %s, and commit %s does not know of it", r.id, target.Commit, repository, m.Commit)
			}
		}
		for _, s := range r.steps {
			if s.Module != target.Module || s.Before == nil {
				continue
			}
			if stood := j.merge(repository, s.Before.Commit); stood != nil && stood.Merged.After(carried.Merged) {
				j.say("track-back", "rollout %s of track %s takes %s from commit %s back to commit %s", r.id, r.head.Track, s.StepName, stood.Commit, carried.Commit)
			}
		}
	}
}

// leaves demands that what an engine plans for a track is not just what the track's last rollout has left, of what that has carried: that would be
// left again.
func (j *judge) leaves(r *rollout) {
	last := j.last(r.head.Track)
	if last == nil {
		return
	}
	for _, t := range r.head.Targets {
		if !slices.ContainsFunc(last.head.Targets, func(o events.Target) bool { return o.Module == t.Module && o.Version.Same(t.Version) }) {
			return
		}
	}
	for _, s := range r.steps {
		if was := last.step(s.StepName); !s.Refresh && (was.Tier == "" || was.Refresh || was.phase == events.StepDone || !same(was.After, s.After)) {
			return
		}
	}
	j.say("track-again", "rollout %s is planned for what rollout %s of track %s has left, and nothing is new", r.id, last.id, r.head.Track)
}

// last gives the rollout of a track that ended last.
func (j *judge) last(track string) (last *rollout) {
	for _, r := range j.order {
		if r.status == final && r.head.Track == track && r.closed && (last == nil || r.ended.After(last.ended)) {
			last = r
		}
	}
	return last
}

// released demands that a merge is said to be placed when its rollout has finished.
func (j *judge) released(e es.Event, f events.MergeReleased) {
	m := j.merges[e.Ref.Key]
	if r := j.rollouts[m.rollout]; f.Placed && (r == nil || !r.finished) {
		j.say("merge-placed", "commit %s of %s is said to be placed by rollout %q, which has not finished", m.Commit, m.Repository, m.rollout)
	}
}

// idle demands that a track that does not plan says why, and that this is so.
func (j *judge) idle(w Idle) {
	t := j.tracks[w.Track]
	if w.Reason == "" {
		if t.On != events.OnManual {
			j.sayOf("track-idle", "track %s has something to plan, and nobody plans it", w.Track)
		}
		return
	}
	if !j.idleSo(t, w) {
		j.sayOf("track-why", "track %s is said to wait for %s (%s), which is not so", w.Track, w.WaitsFor, w.Reason)
	}
}

func (j *judge) idleSo(t *track, w Idle) bool {
	switch w.Reason {
	case events.HoldManual:
		return t.On == events.OnManual
	case events.HoldRollout:
		return j.inTheWay(t)
	case events.HoldBuild:
		return slices.ContainsFunc(t.Modules, func(m string) bool { return j.unbuilt(m) })
	case events.HoldNothingNew:
		return !slices.ContainsFunc(t.Modules, func(m string) bool { return j.newer(t, m) })
	case events.HoldFrozen:
		return len(j.freezes) > 0
	case events.HoldVetoed:
		return len(j.vetoed) > 0
	case "node-external":
		return j.anyNode(func(n *node) bool { return n.external })
	case "node-retired":
		return j.anyNode(func(n *node) bool { return n.retired })
	}
	return false
}

func (j *judge) anyNode(is func(*node) bool) bool {
	for _, n := range j.nodes {
		if is(n) {
			return true
		}
	}
	return false
}

// inTheWay says whether a rollout keeps a track from planning: one that moves its modules, or one that has come to nothing, all or in part.
func (j *judge) inTheWay(t *track) bool {
	for _, r := range j.order {
		if r.status != final {
			moves := slices.ContainsFunc(r.head.Targets, func(o events.Target) bool { return slices.Contains(t.Modules, o.Module) })
			if r.head.Track == t.Track || moves && (r.status == running || r.status == paused || r.head.Reverts != "") {
				return true
			}
		}
	}
	last := j.last(t.Track)
	return last != nil && (!last.finished || slices.ContainsFunc(last.steps, func(s *step) bool { return s.phase != events.StepDone }))
}

// unbuilt says whether a merge waits of which a module was not built.
func (j *judge) unbuilt(module string) bool {
	return slices.ContainsFunc(j.waiting(j.modules[module].repository), func(m *merge) bool {
		for _, b := range j.builds {
			if b.Module == module && b.Commit == m.Commit && b.published != nil {
				return false
			}
		}
		return true
	})
}

// newer says whether there is something of a module that a track has to bring: a merge that waits, or a publication that is newer than what stands.
func (j *judge) newer(t *track, module string) bool {
	if t.On == events.OnMerge {
		return len(j.waiting(j.modules[module].repository)) > 0
	}
	var newest *published
	for _, p := range j.published {
		if p.Module == module && !j.vetoed[p.key] {
			newest = p
		}
	}
	for n, p := range j.places {
		if newest != nil && n.Module == module && p.stands != nil && !p.stands.Reference.Equal(newest.Reference) {
			return true
		}
	}
	return false
}
