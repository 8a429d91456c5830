package strategies_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/perkey"
	"catenary/projections/strategies"
	"catenary/projections/viewtest"
)

func strategy(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateStrategy, Key: "canary"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	declared := strategy(events.StrategyDeclared{Name: "canary", Strategy: events.Raw(`{"tiers":[{"name":"all"}]}`), Digest: "77"})
	ended := strategy(events.StrategyEnded{Reason: "replaced"})
	const said = `{"name":"canary","digest":"77","strategy":{"tiers":[{"name":"all"}]}`
	viewtest.Check(t, strategies.New, []viewtest.Row{
		{Name: "declared", When: declared, Then: said + `,"declared":"2026-01-01T00:01:00Z"}`},
		{Name: "ended: what it was stays", Given: []projecttest.Fact{declared}, When: ended, Then: said + `,"declared":"2026-01-01T00:01:00Z","ended":"2026-01-01T00:02:00Z"}`},
		{Name: "declared again", Given: []projecttest.Fact{declared, ended}, When: declared, Then: said + `,"declared":"2026-01-01T00:03:00Z"}`},
		{Name: "ended without being declared", When: ended, Fails: perkey.ErrUntold.Error()},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, strategies.New, false)
}
