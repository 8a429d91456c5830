package aggregates_test

import (
	"testing"

	"catenary/aggregates/projection"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func TestProjection(t *testing.T) {
	t.Parallel()
	const view = "chain-builds"
	ref := commands.ProjectionRef(view)
	skip := func(event uint64) commands.SkipProjection {
		return commands.SkipProjection{View: view, Event: event, Reason: "by mistake"}
	}
	skipped := func(event uint64) es.KeyedEvent {
		return on(ref, events.ProjectionSkipped{View: view, Event: event, Reason: "by mistake"})
	}
	paused, resumed := on(ref, events.ProjectionPaused{View: view, Reason: "disk"}), on(ref, events.ProjectionResumed{Reason: "done"})
	given(t).
		when(commands.ResumeProjection{View: view}).unchanged().
		when(commands.PauseProjection{View: view, Reason: "disk"}).then(paused).
		when(commands.PauseProjection{View: view, Reason: "another"}).unchanged().
		when(skip(7)).then(skipped(7)).
		again().unchanged().
		when(skip(3)).then(skipped(3)).
		when(skip(9)).then(skipped(9)).
		when(commands.ResumeProjection{View: view, Reason: "done"}).then(resumed).
		again().unchanged().
		when(skip(3)).unchanged().
		when(commands.SkipProjection{View: "chain-nodes", Event: 3, Reason: "x"}).
		then(on(commands.ProjectionRef("chain-nodes"), events.ProjectionSkipped{View: "chain-nodes", Event: 3, Reason: "x"}))
}

func TestProjectionSkipsAreBounded(t *testing.T) {
	t.Parallel()
	s := projection.State{Skipped: make([]uint64, projection.MaxSkips)}
	for i := range s.Skipped {
		s.Skipped[i] = uint64(i + 1)
	}
	p := commands.SkipProjection{View: "v", Event: projection.MaxSkips + 1, Reason: "x"}
	if _, err := projection.Decide(s, es.Command{Ref: p.Ref(), Verb: p.Verb(), Data: p}); err == nil {
		t.Error("a skip over the limit is taken")
	}
	p.Event = 5
	if facts, err := projection.Decide(s, es.Command{Ref: p.Ref(), Verb: p.Verb(), Data: p}); err != nil || len(facts) != 0 {
		t.Errorf("one that stands already gives %v, %v", facts, err)
	}
}
