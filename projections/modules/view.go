package modules

import (
	"time"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Modules, version, fold) }

func fold(before *chain.Module, e es.Event, data events.Module) (chain.Module, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.ModuleRegistered:
		return said(data.ModuleSpec, at), nil
	case events.ModuleChanged:
		if before == nil {
			return chain.Module{}, perkey.Untold(e)
		}
		m := said(data.ModuleSpec, before.Registered)
		m.Ended = before.Ended
		return m, nil
	case events.ModuleEnded:
		if before == nil {
			return chain.Module{}, perkey.Untold(e)
		}
		before.Ended = at
		return *before, nil
	}
	return chain.Module{}, perkey.Unknown(e)
}

func said(s events.ModuleSpec, registered time.Time) chain.Module {
	return chain.Module{
		Name: s.Module, Repository: s.Repository, Seat: s.Seat, Path: s.Path, Kind: s.Kind, Requires: s.Requires,
		Labels: s.Labels, Delivery: s.Delivery, Registered: registered,
	}
}
