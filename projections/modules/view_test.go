package modules_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/modules"
	"catenary/projections/perkey"
)

func web(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateModule, Key: "web"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	registered := web(events.ModuleRegistered{ModuleSpec: events.ModuleSpec{
		Module: "web", Repository: "git.example/shop", Seat: "shop", Path: "web", Kind: "service", Requires: []string{"db"},
		Labels: map[string]string{"team": "ä", "b": "<&>"},
		Delivery: &events.Delivery{
			Drivers: []string{"exec"}, Timeout: "1m",
			Check: &events.Check{HTTP: "http://localhost/", Interval: "5s", Successes: 2, Failures: 3},
		},
	}})
	changed := web(events.ModuleChanged{ModuleSpec: events.ModuleSpec{Module: "web", Repository: "r2"}})
	ended := web(events.ModuleEnded{Reason: "gone"})
	const said = `{"name":"web","repository":"git.example/shop","seat":"shop","path":"web","kind":"service","requires":["db"],` +
		`"labels":{"b":"<&>","team":"ä"},"delivery":{"drivers":["exec"],"check":{"http":"http://localhost/","interval":"5s",` +
		`"successes":2,"failures":3},"timeout":"1m"},`
	backfilled := changed
	backfilled.Backfill = true
	check(t, []scenario{
		{name: "registered", when: registered, then: said + `"registered":"2026-01-01T00:01:00Z"}`},
		{
			name: "registered again and again: known anew", given: []projecttest.Fact{registered}, when: registered,
			then: said + `"registered":"2026-01-01T00:02:00Z"}`,
		},
		{
			name: "changed: all is replaced", given: []projecttest.Fact{registered}, when: changed,
			then: `{"name":"web","repository":"r2","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			name: "ended: what was said stays", given: []projecttest.Fact{registered, changed}, when: ended,
			then: `{"name":"web","repository":"r2","registered":"2026-01-01T00:01:00Z","ended":"2026-01-01T00:03:00Z"}`,
		},
		{
			name: "registered after it ended", given: []projecttest.Fact{registered, ended},
			when: web(events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "web"}}),
			then: `{"name":"web","registered":"2026-01-01T00:03:00Z"}`,
		},
		{
			name: "at its effective time", when: projecttest.Fact{Ref: registered.Ref, Data: events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "web"}}, Effective: projecttest.Recorded(0).AddDate(-1, 0, 0)},
			then: `{"name":"web","registered":"2025-01-01T00:00:00Z"}`,
		},
		{name: "backfilled: nothing that stands is changed", given: []projecttest.Fact{registered}, when: backfilled},
		{name: "of another aggregate", when: projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateNode, Key: "web"}, Data: events.NodeRegistered{Node: "web"}}},
		{name: "changed without being known", when: changed, fails: perkey.ErrUntold.Error()},
		{name: "ended without being known", when: ended, fails: "chain-modules: event 1 (module.ended.v1 of module web)"},
		{name: "told of another", when: web(events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "db"}}), fails: "a record of db stands under key web"},
	})
}

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), modules.New).Given(c.given...).When(c.when)
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
	_, err := modules.New().Fold(es.Event{Sequence: 7, Type: "module.later.v1", Ref: es.Ref{Aggregate: "module", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
