package assignments

import (
	"catenary/chain"
	"catenary/es"
	"catenary/events"
	"catenary/projections/perkey"
)

// observed gives the record with a report in it. The verdict of the report is left to how.
func observed(before *chain.Assignment, e es.Event, how func(*chain.Observed)) (chain.Assignment, error) {
	if before == nil {
		return chain.Assignment{}, perkey.Untold(e)
	}
	if before.Observed == nil {
		before.Observed = &chain.Observed{}
	}
	how(before.Observed)
	before.Observed.At = e.Effective.UTC()
	return *before, nil
}

// runs notes what a report says to run. A report need not repeat it; when it names something else than the one before, that
// one's health and drift were about another thing.
func runs(o *chain.Observed, s events.Seen) {
	if s.Build == "" && s.Reference.IsZero() || s.Build == o.Build && s.Reference.Equal(o.Reference) {
		return
	}
	*o = chain.Observed{Build: s.Build, Reference: s.Reference}
}

// applied notes that the node runs what it was told: health and drift are not known yet.
func applied(o *chain.Observed, s events.Seen) {
	*o = chain.Observed{Build: s.Build, Reference: s.Reference}
}

func healthy(o *chain.Observed, s events.Seen, verdict bool) {
	runs(o, s)
	o.Healthy = &verdict
}

func drifted(o *chain.Observed, d events.AssignmentDrifted) {
	runs(o, d.Seen)
	o.Drift = d.Drift
}
