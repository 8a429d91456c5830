package strategies

import (
	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Strategies, version, fold) }

func fold(before *chain.Strategy, e es.Event, data events.StrategyFact) (chain.Strategy, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.StrategyDeclared:
		return chain.Strategy{Name: data.Name, Digest: data.Digest, Strategy: data.Strategy, Declared: at}, nil
	case events.StrategyEnded:
		if before == nil {
			return chain.Strategy{}, perkey.Untold(e)
		}
		before.Ended = at
		return *before, nil
	}
	return chain.Strategy{}, perkey.Unknown(e)
}
