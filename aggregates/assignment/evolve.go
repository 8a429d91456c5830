package assignment

import (
	"unique"

	"catenary/aggregates/content"
	"catenary/commands"
	"catenary/events"
)

// Evolve gives the state after a fact with its sequence, whose JSON has at most the given number of bytes.
func Evolve(s State, fact events.Assignment, sequence uint64, bytes int) State {
	switch e := fact.(type) {
	case events.AssignmentAssigned:
		return s.say(Standing, e.Told, sequence, bytes)
	case events.AssignmentMovedIn:
		return s.say(Standing, e.Told, sequence, bytes)
	case events.AssignmentPended:
		return s.say(Pending, e.Told, sequence, bytes)
	case events.AssignmentEnded:
		return s.end(e.Rollout, sequence)
	case events.AssignmentMovedOut:
		return s.end("", sequence)
	case events.AssignmentApplied:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeApplied}, Applied, bytes)
	case events.AssignmentApplyFailed:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeApplyFailed}, ApplyFailed, bytes)
	case events.AssignmentHealthy:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeHealthy}, Healthy, bytes)
	case events.AssignmentUnhealthy:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeUnhealthy}, Unhealthy, bytes)
	case events.AssignmentRemoved:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeRemoved}, Removed, bytes)
	case events.AssignmentRemoveFailed:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeRemoveFailed}, RemoveFailed, bytes)
	case events.AssignmentDrifted:
		return s.see(commands.Observe{Seen: e.Seen, Outcome: commands.OutcomeDrifted, Drift: e.Drift}, Drifted, bytes)
	}
	return s
}

// say takes what the node is told. What it reported before was about something else; what it hands on stays until it hands on something else.
func (s State) say(status Status, t events.Told, sequence uint64, bytes int) State {
	r := running(t.Reference, t.Build, t.Commit)
	r.Rollout = t.Rollout
	x := extra{requiredBy: t.RequiredBy, provisioning: t.Provisioning, inputs: t.Inputs, outputs: s.Outputs()}
	if status == Pending {
		x.inputs = gone(s.inputs()) // the node is told nothing
	}
	return State{Status: status, Told: sequence, ToldBytes: uint32(bytes), SeenBytes: s.SeenBytes, run: unique.Make(r), extra: x.orNone()}
}

// end keeps no more than that there was something, which rollout ended it, and what the node may have been handed: the record keeps what it was.
func (s State) end(rollout string, sequence uint64) State {
	x := extra{inputs: gone(s.inputs())}
	s = State{Status: Ended, Told: sequence, ToldBytes: s.ToldBytes, SeenBytes: s.SeenBytes, extra: x.orNone()}
	if rollout != "" {
		s.run = unique.Make(Run{Rollout: rollout})
	}
	return s
}

// see takes a report, in the form it came in.
func (s State) see(report commands.Observe, said Report, bytes int) State {
	s.Observed, s.SeenBytes = content.Of(report), uint32(bytes)
	if !s.about(report.Seen) {
		return s
	}
	s.report = said
	switch {
	case s.Status == Ended && said == Removed:
		s.extra = nil
	case said == Applied:
		x := extra{}
		if s.extra != nil {
			x = *s.extra
		}
		x.outputs = report.Outputs
		s.extra = x.orNone()
	}
	return s
}
