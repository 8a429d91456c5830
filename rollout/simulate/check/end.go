package check

import (
	"slices"

	"catenary/es"
	"catenary/events"
)

// stepEnded holds the end of a step to what it says of itself.
func (j *judge) stepEnded(e es.Event, r *rollout, f events.RolloutStepEnded) {
	s, t := r.step(f.StepName), r.tier(f.Tier)
	switch {
	case !s.open() && s.phase != events.StepUnknown:
		j.say("end-once", "%s of rollout %s ends as %s, and is %s", s.StepName, r.id, f.Outcome, s.phase)
	case f.From == "" && s.phase != events.StepPending, f.From != "" && f.From != s.phase:
		j.say("end-from", "%s of rollout %s ends as one that is %q, and is %s", s.StepName, r.id, f.From, s.phase)
	case f.Attempt != s.attempt:
		j.say("end-once", "%s of rollout %s ends try %d, and is at %d", s.StepName, r.id, f.Attempt, s.attempt)
	}
	p := j.place(f.StepName)
	engine := j.history.Engines[e.Command.Actor]
	if engine == (f.By == events.SettledByPerson) && f.By != events.SettledAlready {
		j.say("end-by", "%s of rollout %s is ended by %s, and the command is that of %s", s.StepName, r.id, f.By, e.Command.Actor)
	}
	switch f.By {
	case events.SettledByReport:
		good := f.Outcome == events.StepDone && (s.After == nil && p.said == saidRemoved || s.After != nil && (p.said == saidApplied || p.said == saidHealthy))
		bad := f.Outcome == events.StepFailed && p.said == saidFailed
		if p.rollout != r.id || s.phase != events.StepPending || !good && !bad {
			j.say("end-reported", "%s of rollout %s ends as %s, and its node has said %q on behalf of %q", s.StepName, r.id, f.Outcome, p.said, p.rollout)
		}
	case events.SettledByDeadline:
		given, taken := t.StepTimeout(), r.active(s.begun, e.Recorded)
		if f.Outcome != events.StepUnknown || s.phase != events.StepPending || taken < given {
			j.say("end-deadline", "%s of rollout %s ends as %s after %v, and has %v", s.StepName, r.id, f.Outcome, taken, given)
		}
	case events.SettledAlready:
		if f.Outcome != events.StepDone || s.Refresh || !same(p.stands, s.After) {
			j.say("end-already", "%s of rollout %s is right already, at %s where %s is planned", s.StepName, r.id, say(p.stands), say(s.After))
		}
	case events.SettledByPolicy:
		if s.phase != events.StepWaiting || !j.policy(e, r, s, t, f) {
			j.say("end-policy", "%s of rollout %s ends as %s, and no policy of tier %s says so", s.StepName, r.id, f.Outcome, t.Name)
		}
	case events.SettledByPerson:
	default:
		j.say("end-by", "%s of rollout %s is ended by %q", s.StepName, r.id, f.By)
	}
	if f.Again && s.spent >= t.Retry {
		j.say("retry", "%s of rollout %s is tried again after %d tries that failed, and tier %s allows %d", s.StepName, r.id, s.spent+1, t.Name, t.Retry)
	}
	j.notifies(r, s, f)
	j.handsOn(r, f)
}

// policy says whether a policy of the tier lets a step that has not begun end so.
func (j *judge) policy(e es.Event, r *rollout, s *step, t *tier, f events.RolloutStepEnded) bool {
	if f.Outcome == events.StepFailed {
		return t.Offline == events.OfflineFail && j.wasAway(s.Node, e.Recorded)
	}
	ready, hopeless := true, false
	for _, w := range s.WaitsFor {
		before := r.step(w.StepName)
		ready = ready && before.phase == events.StepDone
		hopeless = hopeless || !before.open() && before.phase != events.StepDone
	}
	return f.Outcome == events.StepSkipped && (t.Offline == events.OfflineSkip && j.wasAway(s.Node, e.Recorded) || hopeless || s.Refresh && ready && s.notified == 0)
}

// notifies demands that a step that has changed something tells all that wait to be told, and no others.
func (j *judge) notifies(r *rollout, s *step, f events.RolloutStepEnded) {
	changed := f.Outcome == events.StepDone && f.By != events.SettledAlready && r.status != final
	for _, o := range r.steps {
		waits := slices.ContainsFunc(o.WaitsFor, func(w events.WaitFor) bool { return w.StepName == s.StepName && w.Notify })
		switch told := slices.Contains(f.Notified, o.StepName); {
		case told && !(changed && waits):
			j.say("notified", "%s of rollout %s tells %s, which has nothing to be told", s.StepName, r.id, o.StepName)
		case !told && changed && waits:
			j.say("notified", "%s of rollout %s does not tell %s that it has changed something", s.StepName, r.id, o.StepName)
		}
	}
}
