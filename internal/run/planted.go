package run

import (
	"catenary/aggregates"
	"catenary/es"
	"catenary/events"
	"catenary/internal/failpoint"
)

// decider gives the world as a model. Where a bug of the domain is planted, it is the one that makes it: the deciders themselves hang on
// nothing but their arguments.
func decider(w *aggregates.World) es.Decider {
	if failpoint.Planted(failpoint.BeginTwice) || failpoint.Planted(failpoint.EndTwice) {
		return twofold{w}
	}
	return w
}

// twofold is a world that says some things twice.
type twofold struct{ *aggregates.World }

// Decide implements [es.Decider].
func (t twofold) Decide(c es.Command) ([]es.KeyedEvent, error) {
	facts, err := t.World.Decide(c)
	var all []es.KeyedEvent
	for _, f := range facts {
		all = append(all, f)
		switch f.Data.(type) {
		case events.RolloutStepBegun:
			if failpoint.Planted(failpoint.BeginTwice) {
				all = append(all, f)
			}
		case events.RolloutStepEnded:
			if failpoint.Planted(failpoint.EndTwice) {
				all = append(all, f)
			}
		}
	}
	return all, err
}
