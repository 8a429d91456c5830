package tracks

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
func New() project.View { return perkey.New(chain.Tracks, version, fold) }

func fold(before *chain.Track, e es.Event, data events.Track) (chain.Track, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.TrackDeclared:
		return record(data.TrackSpec, at), nil
	case events.TrackChanged:
		if before == nil {
			return chain.Track{}, perkey.Untold(e)
		}
		return record(data.TrackSpec, before.Declared), nil
	case events.TrackEnded:
		if before == nil {
			return chain.Track{}, perkey.Untold(e)
		}
		before.Ended = at
		return *before, nil
	}
	return chain.Track{}, perkey.Unknown(e)
}

func record(t events.TrackSpec, declared time.Time) chain.Track {
	return chain.Track{Track: t.Track, Modules: t.Modules, Strategy: t.Strategy, On: t.On, Declared: declared}
}
