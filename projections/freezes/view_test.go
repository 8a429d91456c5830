package freezes_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/freezes"
	"catenary/projections/perkey"
)

func holiday(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateFreeze, Key: "holiday"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	declared := holiday(events.FreezeDeclared{
		Name: "holiday", Selector: events.Selector{Modules: []string{"web"}, Nodes: []string{"n1"}, Labels: map[string]string{"b": "1", "a": "2"}},
		Window: &events.Window{Recurring: &events.Recurring{Days: []string{"sat"}, From: "22:00", To: "06:00", Zone: "Europe/Berlin"}}, Reason: "rest",
	})
	everything := holiday(events.FreezeDeclared{Name: "holiday"})
	lifted := holiday(events.FreezeLifted{Reason: "back"})
	const said = `{"name":"holiday","selector":{"modules":["web"],"nodes":["n1"],"labels":{"a":"2","b":"1"}},"window":{"recurring":` +
		`{"days":["sat"],"from":"22:00","to":"06:00","zone":"Europe/Berlin"}},"reason":"rest","declared":"2026-01-01T00:01:00Z"`
	check(t, []scenario{
		{name: "declared", when: declared, then: said + `}`},
		{name: "declared for everything", when: everything, then: `{"name":"holiday","declared":"2026-01-01T00:01:00Z"}`},
		{
			name: "declared again: all is replaced", given: []projecttest.Fact{declared}, when: everything,
			then: `{"name":"holiday","declared":"2026-01-01T00:02:00Z"}`,
		},
		{
			name: "lifted: what was declared stays", given: []projecttest.Fact{declared}, when: lifted,
			then: said + `,"ended":"2026-01-01T00:02:00Z"}`,
		},
		{
			name: "lifted again", given: []projecttest.Fact{declared, lifted}, when: lifted,
			then: said + `,"ended":"2026-01-01T00:03:00Z"}`,
		},
		{
			name: "declared after it was lifted", given: []projecttest.Fact{declared, lifted}, when: everything,
			then: `{"name":"holiday","declared":"2026-01-01T00:03:00Z"}`,
		},
		{name: "lifted without being declared", when: lifted, fails: perkey.ErrUntold.Error()},
	})
}

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), freezes.New).Given(c.given...).When(c.when)
			switch {
			case c.fails != "":
				outcome.ThenFails(c.fails)
			case c.then == "":
				outcome.ThenNothing()
			default:
				outcome.Then(project.Value{Key: c.when.Ref.Key, Data: []byte(c.then)})
			}
		})
	}
}

// scenario is one event with those before it, and the value it leads to: none when then is empty.
type scenario struct {
	name  string
	given []projecttest.Fact
	when  projecttest.Fact
	then  string
	fails string
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	_, err := freezes.New().Fold(es.Event{Sequence: 7, Type: "freeze.later.v1", Ref: es.Ref{Aggregate: "freeze", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
