package check

import (
	"catenary/es"
	"catenary/events"
)

// fenced demands that engines act under the lease as it stands.
func (j *judge) fenced(e es.Event) {
	if !j.history.Engines[e.Command.Actor] || e.Ref.Aggregate == events.AggregateLease {
		return
	}
	if fence := j.history.Fences[e.Command.ID]; fence == 0 || fence != j.lease {
		j.say("fence", "%s acts under the fence %d, and the lease is %d", e.Command.Actor, fence, j.lease)
	}
}

// taken demands that nobody loses the lease who is there and can renew it.
func (j *judge) taken(e es.Event, f events.LeaseTaken) {
	if quiet := j.history.Quiet; j.history.Lease > 0 && !quiet.IsZero() && e.Recorded.After(quiet.Add(2*j.history.Lease)) {
		j.say("lease-kept", "%s takes the lease, and its holder was there", f.Holder)
	}
}
