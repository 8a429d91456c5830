package track

import (
	"fmt"

	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/aggregates/module"
	"catenary/aggregates/strategy"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of tracks.
const (
	CodeUnknown  = "unknown-track"
	CodeDeclared = "declared"
	CodeEnded    = "track-ended"
	CodeTracked  = "module-tracked"
)

// Decide gives what a command about a track leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.DeclareTrack:
		return declare(w, s, c, p)
	case commands.ChangeTrack:
		return change(w, s, c, p)
	case commands.EndTrack:
		return end(s, c, p)
	}
	return nil, decision.Unknown(c)
}

func declare(w World, s State, c es.Command, p commands.DeclareTrack) ([]es.KeyedEvent, error) {
	switch {
	case s.Status == Declared && s.Content == content.Of(p.TrackSpec):
		return nil, nil
	case s.Status == Declared:
		return nil, es.Refuse(CodeDeclared, fmt.Sprintf("track %s is declared with other content", p.Track), "use track change")
	}
	if err := carriable(w, p.TrackSpec); err != nil {
		return nil, err
	}
	return decision.Record(c.Ref, events.TrackDeclared{TrackSpec: p.TrackSpec}), nil
}

func change(w World, s State, c es.Command, p commands.ChangeTrack) ([]es.KeyedEvent, error) {
	if err := Known(p.Track, s); err != nil {
		return nil, err
	}
	if s.Content == content.Of(p.TrackSpec) {
		return nil, nil
	}
	if err := carriable(w, p.TrackSpec); err != nil {
		return nil, err
	}
	return decision.Record(c.Ref, events.TrackChanged{TrackSpec: p.TrackSpec}), nil
}

// carriable refuses modules and strategies that are not there, and modules that another track carries.
func carriable(w World, t events.TrackSpec) error {
	if err := strategy.Known(t.Strategy, w.Strategy(t.Strategy)); err != nil {
		return err
	}
	for _, m := range t.Modules {
		if err := module.Known(m, w.Module(m)); err != nil {
			return err
		}
		if other, ok := w.TrackOf(m); ok && other != t.Track {
			return es.Refuse(CodeTracked, fmt.Sprintf("module %s is on track %s", m, other), "take it off that track first: two would plan for it")
		}
	}
	return nil
}

func end(s State, c es.Command, p commands.EndTrack) ([]es.KeyedEvent, error) {
	switch s.Status {
	case Unknown:
		return nil, unknown(p.Track)
	case Ended:
		return nil, nil
	}
	return decision.Record(c.Ref, events.TrackEnded{Reason: p.Reason}), nil
}

// Known refuses a track that is not declared now.
func Known(name string, s State) error {
	switch s.Status {
	case Unknown:
		return unknown(name)
	case Ended:
		return es.Refuse(CodeEnded, fmt.Sprintf("track %s has ended", name), "declare it again with track declare")
	}
	return nil
}

func unknown(name string) error {
	return es.Refuse(CodeUnknown, fmt.Sprintf("track %s is not known", name), "declare it with track declare")
}
