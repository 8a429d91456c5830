package assignments

import (
	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 2

// New returns the view without records.
func New() project.View {
	return perkey.New(chain.Assignments, version, fold)
}

func fold(before *chain.Assignment, e es.Event, data events.Assignment) (chain.Assignment, error) {
	switch data := data.(type) {
	case events.AssignmentAssigned:
		return told(before, data.Told, e), nil
	case events.AssignmentMovedIn:
		return told(before, data.Told, e), nil
	case events.AssignmentPended:
		return pended(before, data, e), nil
	case events.AssignmentEnded, events.AssignmentMovedOut:
		return ended(before, e)
	case events.AssignmentApplied:
		return observed(before, e, func(o *chain.Observed) { applied(o, data.Seen) })
	case events.AssignmentHealthy:
		return observed(before, e, func(o *chain.Observed) { healthy(o, data.Seen, true) })
	case events.AssignmentUnhealthy:
		return observed(before, e, func(o *chain.Observed) { healthy(o, data.Seen, false) })
	case events.AssignmentDrifted:
		return observed(before, e, func(o *chain.Observed) { drifted(o, data) })
	case events.AssignmentRemoved:
		return observed(before, e, func(o *chain.Observed) { *o = chain.Observed{} })
	case events.AssignmentApplyFailed, events.AssignmentRemoveFailed:
		// What the report names is what could not be done. The node runs what it ran.
		return observed(before, e, func(*chain.Observed) {})
	}
	return chain.Assignment{}, perkey.Unknown(e)
}
