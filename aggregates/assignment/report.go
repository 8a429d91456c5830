package assignment

import "catenary/events"

// Report is what a node has said of what it was last told.
type Report uint8

// The reports of a node. Only the newest counts.
const (
	Silent Report = iota
	Applied
	ApplyFailed
	Healthy
	Unhealthy
	Removed
	RemoveFailed
	Drifted
)

// Here says whether the node has said that it runs what it was told.
func (r Report) Here() bool { return r == Applied || r == Healthy }

// Gone says whether the node has said that it does not run the module any more.
func (r Report) Gone() bool { return r == Removed }

// Bad says whether the node has said that something is wrong.
func (r Report) Bad() bool {
	return r == ApplyFailed || r == Unhealthy || r == RemoveFailed || r == Drifted
}

// Reported gives what the node has said of what a rollout last told it. A report that names another rollout, another build, or an
// instruction before the last one says nothing of it.
func (s State) Reported(rollout string) Report {
	if !s.HasRollout(rollout) {
		return Silent
	}
	return s.report
}

// about says whether a report is about what the node was last told.
func (s State) about(seen events.Seen) bool {
	if s.Status == None || seen.Source != 0 && seen.Source < s.Told {
		return false
	}
	var run Run
	if s.hasRun() {
		run = s.run.Value()
	}
	if seen.Rollout != run.Rollout {
		return false
	}
	if s.Status == Ended {
		return true // there is nothing left to be at
	}
	said := events.Version{Reference: seen.Reference, Build: seen.Build}
	if said.IsZero() {
		return said.Build != "" && said.Build == run.Build
	}
	return said.Same(events.Version{Reference: run.Reference(), Build: run.Build})
}

// Well says whether the node has said that it found the module healthy.
func (r Report) Well() bool { return r == Healthy }

// HasRollout says whether it was a rollout that last told the node something.
func (s State) HasRollout(rollout string) bool { return s.hasRun() && s.run.Value().Rollout == rollout }
