package walk

import (
	"time"

	"catenary/events"
)

// place is a module on a node: what the node was last told, and what it has reported of just that.
type place struct {
	// told is the sequence of the event by which the node was last told something.
	told uint64
	// at is what it was told to be at; nil when nothing stands.
	at *events.Version
	// rollout is the one that last told it; empty when something else did.
	rollout string
	// said is what the node has said of it.
	said report
	// reason, driver and when are those of its last report about it.
	reason string
	driver *events.Driver
	when   time.Time
	// steps are those of rollouts that are walked.
	steps []*step
}

// report is what a node says of what it was told.
type report uint8

const (
	silent report = iota
	applied
	applyFailed
	healthy
	unhealthy
	removed
	removeFailed
	drifted
)

// bad says whether something is wrong.
func (r report) bad() bool {
	return r == applyFailed || r == unhealthy || r == removeFailed || r == drifted
}

// here says whether the node runs what it was told, gone that it does not run the module any more.
func (r report) here() bool { return r == applied || r == healthy }
func (r report) gone() bool { return r == removed }

// tell takes in what the node is told. What it reported before was about something else.
func (p *place) tell(sequence uint64, at *events.Version, rollout string) {
	*p = place{told: sequence, at: at, rollout: rollout, steps: p.steps}
}

// see takes in a report, if it is about what the node was last told, and says whether it is.
func (p *place) see(seen events.Seen, said report, when time.Time) bool {
	if p.rollout == "" || seen.Rollout != p.rollout || seen.Source != 0 && seen.Source < p.told {
		return false
	}
	if p.at != nil { // where nothing stands there is nothing to be at
		v := events.Version{Reference: seen.Reference, Build: seen.Build}
		if v.IsZero() && (v.Build == "" || v.Build != p.at.Build) || !v.IsZero() && !v.Same(*p.at) {
			return false
		}
	}
	p.said, p.reason, p.driver, p.when = said, seen.Reason, seen.Driver, when
	return true
}

// of gives what the node has said of what a rollout last told it.
func (p *place) of(rollout string) report {
	if p.rollout != rollout {
		return silent
	}
	return p.said
}

// same compares what stands with what a plan names; both may be nothing.
func same(a, b *events.Version) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a == b || a.Same(*b)
}

func say(v *events.Version) string {
	if v == nil {
		return "nothing"
	}
	return v.String()
}
