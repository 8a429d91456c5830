package assignment

import (
	"unique"

	"catenary/aggregates/content"
	"catenary/commands"
	"catenary/events"
)

// Evolve gives the state after a fact whose JSON has at most the given number of bytes.
func Evolve(s State, fact events.Assignment, bytes int) State {
	switch e := fact.(type) {
	case events.AssignmentAssigned:
		return s.say(Standing, e.Told, bytes)
	case events.AssignmentMovedIn:
		return s.say(Standing, e.Told, bytes)
	case events.AssignmentPended:
		return s.say(Pending, e.Told, bytes)
	case events.AssignmentEnded:
		return s.end()
	case events.AssignmentMovedOut:
		return s.end()
	case events.AssignmentApplied:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeApplied}, bytes)
	case events.AssignmentApplyFailed:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeApplyFailed}, bytes)
	case events.AssignmentHealthy:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeHealthy}, bytes)
	case events.AssignmentUnhealthy:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeUnhealthy}, bytes)
	case events.AssignmentRemoved:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeRemoved}, bytes)
	case events.AssignmentRemoveFailed:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeRemoveFailed}, bytes)
	case events.AssignmentDrifted:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeDrifted, Drift: e.Drift}, bytes)
	}
	return s
}

// say takes what the node is told. What it reported before was about something else.
func (s State) say(status Status, t events.Told, bytes int) State {
	r := running(t.Reference, t.Build, t.Commit)
	r.Rollout = t.Rollout
	s = State{Status: status, ToldBytes: uint32(bytes), SeenBytes: s.SeenBytes, run: unique.Make(r)}
	if len(t.RequiredBy) > 0 || len(t.Provisioning) > 0 {
		s.extra = &extra{requiredBy: t.RequiredBy, provisioning: t.Provisioning}
	}
	return s
}

// end keeps no more than that there was something: the record keeps what it was.
func (s State) end() State {
	return State{Status: Ended, ToldBytes: s.ToldBytes, SeenBytes: s.SeenBytes}
}

// see takes a report, in the form it came in.
func (s State) see(report commands.Observe, bytes int) State {
	s.Observed, s.SeenBytes = content.Of(report), uint32(bytes)
	return s
}
