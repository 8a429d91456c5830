package modules_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/modules"
	"catenary/projections/perkey"
	"catenary/projections/viewtest"
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
	viewtest.Check(t, modules.New, []viewtest.Row{
		{Name: "registered", When: registered, Then: said + `"registered":"2026-01-01T00:01:00Z"}`},
		{
			Name: "registered again and again: known anew", Given: []projecttest.Fact{registered}, When: registered,
			Then: said + `"registered":"2026-01-01T00:02:00Z"}`,
		},
		{
			Name: "changed: all is replaced", Given: []projecttest.Fact{registered}, When: changed,
			Then: `{"name":"web","repository":"r2","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			Name: "ended: what was said stays", Given: []projecttest.Fact{registered, changed}, When: ended,
			Then: `{"name":"web","repository":"r2","registered":"2026-01-01T00:01:00Z","ended":"2026-01-01T00:03:00Z"}`,
		},
		{
			Name: "registered after it ended", Given: []projecttest.Fact{registered, ended},
			When: web(events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "web"}}),
			Then: `{"name":"web","registered":"2026-01-01T00:03:00Z"}`,
		},
		{
			Name: "at its effective time", When: projecttest.Fact{Ref: registered.Ref, Data: events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "web"}}, Effective: projecttest.Recorded(0).AddDate(-1, 0, 0)},
			Then: `{"name":"web","registered":"2025-01-01T00:00:00Z"}`,
		},
		{Name: "backfilled: nothing that stands is changed", Given: []projecttest.Fact{registered}, When: backfilled},
		{Name: "of another aggregate", When: projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateNode, Key: "web"}, Data: events.NodeRegistered{Node: "web"}}},
		{Name: "changed without being known", When: changed, Fails: perkey.ErrUntold.Error()},
		{Name: "ended without being known", When: ended, Fails: "chain-modules: event 1 (module.ended.v1 of module web)"},
		{Name: "told of another", When: web(events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "db"}}), Fails: "a record of db stands under key web"},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, modules.New, false)
}
