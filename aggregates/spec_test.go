package aggregates_test

import (
	"testing"
	"time"

	"catenary/aggregates"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
)

// day is when everything happens in a story, unless it says otherwise.
var day = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// story is a scenario whose clock stands still, and whose world can be looked at.
type story struct {
	t        *testing.T
	scenario *estest.Scenario
	world    *aggregates.World
	now      time.Time
}

func given(t *testing.T, facts ...es.KeyedEvent) *story {
	t.Helper()
	return givenWorld(t, aggregates.Config{}, facts...)
}

func givenWorld(t *testing.T, cfg aggregates.Config, facts ...es.KeyedEvent) *story {
	t.Helper()
	s := &story{t: t, now: day}
	s.scenario = estest.Spec(t, func() es.Decider {
		w, err := aggregates.NewWorld(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if s.world == nil {
			s.world = w // later ones are only compared with the first
		}
		return w
	}, events.Registry())
	return s.and(facts...)
}

// at sets the clock.
func (s *story) at(now time.Time) *story {
	s.now = now
	return s
}

// and lets more facts have happened.
func (s *story) and(facts ...es.KeyedEvent) *story {
	s.t.Helper()
	for _, f := range facts {
		s.scenario.At(s.now).Given(f)
	}
	return s
}

func effective(at time.Time) estest.Option { return estest.Effective(at) }

func backfill(at time.Time) estest.Option {
	return func(c *es.Command) { c.Effective, c.Backfill = at, true }
}

// when sends a command.
func (s *story) when(p es.Payload, options ...estest.Option) outcome {
	s.t.Helper()
	o := outcome{story: s}
	keep := func(c *es.Command) { o.command = *c }
	o.decision = s.scenario.At(s.now).When(p, append(options, keep)...)
	return o
}

// again sends the last command once more, as a new one.
func (s *story) again() outcome {
	s.t.Helper()
	return outcome{story: s, decision: s.scenario.At(s.now).Again()}
}

type outcome struct {
	story    *story
	decision *estest.Decision
	command  es.Command
}

// then demands exactly these facts, in this order, and lets them happen.
func (o outcome) then(facts ...es.KeyedEvent) *story {
	o.story.t.Helper()
	o.decision.Then(facts...)
	return o.story
}

// accepted demands that something comes of it, whatever it is, and lets it happen.
func (o outcome) accepted() *story {
	o.story.t.Helper()
	facts, err := o.story.world.Decide(o.command)
	if err == nil && len(facts) == 0 {
		o.story.t.Fatalf("%s: nothing comes of it", o.decision)
	}
	return o.then(facts...)
}

func (o outcome) unchanged() *story {
	o.story.t.Helper()
	o.decision.ThenUnchanged()
	return o.story
}

// rejected demands the refusal of a rule that says all of this.
func (o outcome) rejected(code string, says ...string) *story {
	o.story.t.Helper()
	return o.refused(es.StatusRejected, code, says...)
}

func (o outcome) refused(status es.Status, code string, says ...string) *story {
	o.story.t.Helper()
	o.decision.ThenRefused(code, append(says, string(status)+" ("+code+")")...)
	return o.story
}

// on gives a fact of an instance.
func on(ref es.Ref, fact any) es.KeyedEvent { return es.KeyedEvent{Ref: ref, Data: fact} }

// also joins lists of facts.
func also(lists ...[]es.KeyedEvent) []es.KeyedEvent {
	var all []es.KeyedEvent
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
