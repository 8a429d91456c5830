package estest

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// A small world: lamps are switched on and off. Its flaws are set one at a time.
type (
	switchedOn struct {
		By string    `json:"by"`
		At time.Time `json:"at"`
	}
	switchedOff struct {
		By string `json:"by"`
	}
	// switchLamp is the command.
	switchLamp struct {
		Lamp string `json:"lamp"`
		On   bool   `json:"on"`
	}
)

func (c switchLamp) Ref() es.Ref { return es.Ref{Aggregate: "lamp", Key: c.Lamp} }
func (c switchLamp) Verb() string {
	if c.On {
		return "on"
	}
	return "off"
}

func (c switchLamp) Validate() error {
	if c.Lamp == "" {
		return errors.New("lamp is empty")
	}
	return nil
}

type flaw int

const (
	none flaw = iota
	countsDecisions
	keepsOnRollback
	forgetsOnRollback
	miscounts
	readsPastTheEvent
)

type lamps struct {
	flaw     flaw
	on       map[string]bool
	versions map[es.Ref]uint64
	undo     []func()
	asked    int
}

func lampWorld(f flaw) func() es.Decider {
	return func() es.Decider {
		return &lamps{flaw: f, on: map[string]bool{}, versions: map[es.Ref]uint64{}}
	}
}

func (l *lamps) Decide(c es.Command) ([]es.KeyedEvent, error) {
	l.asked++
	cmd := c.Data.(switchLamp)
	by := c.Actor
	if l.flaw == countsDecisions && l.asked > 1 {
		by += "!"
	}
	switch on := l.on[cmd.Lamp]; {
	case cmd.Lamp == "broken":
		return nil, es.Refuse("lamp-broken", "lamp broken does not work", "take another")
	case on == cmd.On:
		return nil, nil
	case cmd.On:
		return []es.KeyedEvent{{Ref: c.Ref, Data: switchedOn{By: by, At: c.At()}}}, nil
	}
	return []es.KeyedEvent{{Ref: c.Ref, Data: switchedOff{By: by}}}, nil
}

func (l *lamps) Apply(e es.Event) error {
	name, was, version := e.Ref.Key, l.on[e.Ref.Key], l.versions[e.Ref]
	if l.flaw != keepsOnRollback {
		l.undo = append(l.undo, func() { l.on[name], l.versions[e.Ref] = was, version })
	}
	switch e.Data.(type) {
	case switchedOn:
		l.on[name] = true
	case switchedOff:
		l.on[name] = false
	}
	l.versions[e.Ref] = e.Version
	if l.flaw == miscounts {
		l.versions[e.Ref]++
	}
	if l.flaw == readsPastTheEvent {
		l.on[name] = e.Sequence > 1 && l.on[name]
	}
	return nil
}

func (l *lamps) Note(es.Command)           {}
func (l *lamps) Version(ref es.Ref) uint64 { return l.versions[ref] }
func (l *lamps) Fenced(uint64) bool        { return false }
func (l *lamps) Mark() es.Mark             { return es.Mark(len(l.undo)) }
func (l *lamps) Release(es.Mark)           { l.undo = nil }

func (l *lamps) Rollback(m es.Mark) {
	for len(l.undo) > int(m) {
		l.undo[len(l.undo)-1]()
		l.undo = l.undo[:len(l.undo)-1]
	}
	if l.flaw == forgetsOnRollback {
		clear(l.on)
	}
}

func lampRegistry() *es.Registry {
	r := es.NewRegistry(es.Msgpack{})
	es.Register[switchedOn](r, "lamp.on.v1")
	es.Register[switchedOff](r, "lamp.off.v1")
	return r
}

func on(lamp, by string, at time.Time) es.KeyedEvent {
	return es.KeyedEvent{Ref: es.Ref{Aggregate: "lamp", Key: lamp}, Data: switchedOn{By: by, At: at}}
}

func off(lamp, by string) es.KeyedEvent {
	return es.KeyedEvent{Ref: es.Ref{Aggregate: "lamp", Key: lamp}, Data: switchedOff{By: by}}
}

func TestSpecHolds(t *testing.T) {
	t.Parallel()
	long := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Spec(t, lampWorld(none), lampRegistry()).
		Given(on("a", "ann", Epoch()), off("a", "ann")).
		GivenSince(long, on("b", "bob", long)).
		When(switchLamp{Lamp: "a", On: true}, By("cy"), Effective(long), OnBehalfOf("dee"), WithID("c-1"), Expecting(2), UnderFence(7), Backfill()).
		Then(on("a", "cy", long)).
		Again().ThenUnchanged().
		When(switchLamp{Lamp: "broken", On: true}).ThenRefused("lamp-broken", "broken", "take another").
		At(Epoch().Add(time.Hour)).
		When(switchLamp{Lamp: "c", On: true}).Then(on("c", "tester", Epoch().Add(time.Hour))).
		When(switchLamp{Lamp: "c"}).Then(off("c", "tester")).
		Again().ThenUnchanged()
	recorded := s.Recorded()
	if len(recorded) != 6 {
		t.Fatalf("%d events are recorded", len(recorded))
	}
	e := recorded[3]
	if e.Sequence != 4 || e.Version != 3 || e.Command.ID != "c-1" || e.Command.OnBehalfOf != "dee" || !e.Effective.Equal(long) || !e.Recorded.Equal(Epoch().Add(4*time.Minute)) {
		t.Errorf("event 4 is %+v", e)
	}
	if recorded[2].Recorded.Equal(recorded[2].Effective) {
		t.Error("a fact given since another time is recorded then")
	}
}

// TestSpecFinds lists what a scenario must complain about.
func TestSpecFinds(t *testing.T) {
	t.Parallel()
	lamp := switchLamp{Lamp: "a", On: true}
	cases := []struct {
		name string
		flaw flaw
		run  func(*Scenario)
		says string
	}{
		{"other events", none, func(s *Scenario) { s.When(lamp).Then(off("a", "tester")) }, "-want +got"},
		{"one event less", none, func(s *Scenario) { s.When(lamp).Then() }, "-want +got"},
		{"a refusal instead of events", none, func(s *Scenario) { s.When(switchLamp{Lamp: "broken", On: true}).Then(on("broken", "x", Epoch())) }, "lamp-broken"},
		{"events instead of a refusal", none, func(s *Scenario) { s.When(lamp).ThenRefused("lamp-broken") }, "want it refused as lamp-broken"},
		{"another refusal", none, func(s *Scenario) { s.When(switchLamp{Lamp: "broken"}).ThenUnchanged() }, "want it unchanged"},
		{"another code", none, func(s *Scenario) { s.When(switchLamp{Lamp: "broken"}).ThenRefused("lamp-lost") }, "want lamp-lost"},
		{"a refusal that does not name its object", none, func(s *Scenario) { s.When(switchLamp{Lamp: "broken"}).ThenRefused("lamp-broken", "node n1") }, `does not mention "node n1"`},
		{"events instead of nothing", none, func(s *Scenario) { s.When(lamp).ThenUnchanged() }, "want it unchanged"},
		{"no judgement", none, func(s *Scenario) { s.When(lamp) }, "nothing says what comes of it"},
		{"no judgement before the next", none, func(s *Scenario) { s.When(lamp); s.When(lamp) }, "nothing says what comes of it"},
		{"again without a first time", none, func(s *Scenario) { s.Again() }, "no command came before"},
		{"a malformed command", none, func(s *Scenario) { s.When(switchLamp{}) }, "malformed"},
		{"an unregistered fact", none, func(s *Scenario) { s.Given(es.KeyedEvent{Ref: lamp.Ref(), Data: 1}) }, "not registered"},
		{"a decision that leaves a trace", countsDecisions, func(s *Scenario) { s.When(lamp).Then(on("a", "tester", Epoch())) }, "asked again"},
		{"a rollback that undoes nothing", keepsOnRollback, func(s *Scenario) { s.When(lamp).Then(on("a", "tester", Epoch())) }, "rolled back"},
		{"a rollback that undoes too much", forgetsOnRollback, func(s *Scenario) { s.Given(on("a", "ann", Epoch()), off("b", "ann")).When(lamp).ThenUnchanged() }, "rolled back"},
		{"a wrong version", miscounts, func(s *Scenario) { s.Given(on("a", "ann", Epoch())).When(lamp).ThenUnchanged() }, "counts 2 events"},
		{"a duplicate that does something", readsPastTheEvent, func(s *Scenario) {
			s.When(lamp).Then(on("a", "tester", Epoch().Add(time.Minute))).Again().ThenUnchanged()
		}, "want it unchanged"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			said := failuresOf(t, func(tb testing.TB) { c.run(Spec(tb, lampWorld(c.flaw), lampRegistry())) })
			if !strings.Contains(said, c.says) {
				t.Errorf("the scenario says %q, want %q", said, c.says)
			}
		})
	}
}
