package strategy

import (
	"fmt"

	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of strategies.
const (
	CodeUnknown = "unknown-strategy"
	CodeEnded   = "strategy-ended"
	CodeUsed    = "strategy-used"
)

// Decide gives what a command about a strategy leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.DeclareStrategy:
		return declare(s, c, p)
	case commands.EndStrategy:
		return end(w, s, c, p)
	}
	return nil, decision.Unknown(c)
}

func declare(s State, c es.Command, p commands.DeclareStrategy) ([]es.KeyedEvent, error) {
	parsed, err := events.ParseStrategy(p.Strategy)
	if err != nil {
		return nil, err
	}
	canonical, digest, err := parsed.Canonical()
	switch {
	case err != nil:
		return nil, err
	case s.Status == Declared && s.Digest == digest:
		return nil, nil
	}
	return decision.Record(c.Ref, events.StrategyDeclared{Name: p.Name, Strategy: canonical, Digest: digest}), nil
}

func end(w World, s State, c es.Command, p commands.EndStrategy) ([]es.KeyedEvent, error) {
	switch s.Status {
	case Unknown:
		return nil, unknown(p.Name)
	case Ended:
		return nil, nil
	}
	if tracks := w.TracksOf(p.Name); len(tracks) > 0 {
		return nil, es.Refuse(CodeUsed, fmt.Sprintf("strategy %s is named by %s: %s", p.Name, decision.Count(len(tracks), "track"), decision.Names(tracks, len(tracks))),
			"change or end the track first")
	}
	return decision.Record(c.Ref, events.StrategyEnded{Reason: p.Reason}), nil
}

// Known refuses a strategy that is not declared now.
func Known(name string, s State) error {
	switch s.Status {
	case Unknown:
		return unknown(name)
	case Ended:
		return es.Refuse(CodeEnded, fmt.Sprintf("strategy %s has ended", name), "declare it again with strategy declare")
	}
	return nil
}

func unknown(name string) error {
	return es.Refuse(CodeUnknown, fmt.Sprintf("strategy %s is not known", name), "declare it with strategy declare")
}
