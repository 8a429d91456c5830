package check

import (
	"time"
)

// isAway says whether a node is away at a moment, wasAway whether it was so lately that an engine may not have learned of the contrary.
func (j *judge) isAway(node string, at time.Time) bool { return j.away(node, at, at) }

func (j *judge) wasAway(node string, at time.Time) bool {
	return j.away(node, at.Add(-j.history.Stale), at)
}

func (j *judge) away(node string, from, to time.Time) bool {
	for _, a := range j.history.Away {
		if a.Node == node && !a.From.After(to) && !a.To.Before(from) {
			return true
		}
	}
	return false
}
