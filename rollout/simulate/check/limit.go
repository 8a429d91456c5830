package check

import "catenary/es"

// limited demands that no more steps of a tier begin than its limit lets. A begin is asked for when its turn has come, and may be done a while
// later, when the next has its turn.
func (j *judge) limited(e es.Event, r *rollout, t *tier) {
	if t.Limit == nil {
		return
	}
	begins := append(t.begins[:len(t.begins):len(t.begins)], e.Recorded)
	for i, first := range begins {
		span := e.Recorded.Sub(first) + j.history.Late
		most := float64(max(1, t.Limit.Burst)) + span.Minutes()*float64(t.Limit.PerMinute)
		if n := len(begins) - i; float64(n) > most+1e-6 {
			j.say("limit", "%d steps of tier %s of rollout %s begin within %v, and it lets %d a minute begin, %d at once", n, t.Name, r.id, e.Recorded.Sub(first), t.Limit.PerMinute, t.Limit.Burst)
			return
		}
	}
}
