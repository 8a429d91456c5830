package freezes

import (
	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Freezes, version, fold) }

func fold(before *chain.Freeze, e es.Event, data events.Freeze) (chain.Freeze, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.FreezeDeclared:
		return chain.Freeze{
			Name: data.Name, Selector: data.Selector, Window: data.Window, Reason: data.Reason, Declared: at,
		}, nil
	case events.FreezeLifted:
		if before == nil {
			return chain.Freeze{}, perkey.Untold(e)
		}
		before.Ended = at
		return *before, nil
	}
	return chain.Freeze{}, perkey.Unknown(e)
}
