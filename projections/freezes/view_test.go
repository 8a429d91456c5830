package freezes_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/freezes"
	"catenary/projections/perkey"
	"catenary/projections/viewtest"
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
	viewtest.Check(t, freezes.New, []viewtest.Row{
		{Name: "declared", When: declared, Then: said + `}`},
		{Name: "declared for everything", When: everything, Then: `{"name":"holiday","declared":"2026-01-01T00:01:00Z"}`},
		{
			Name: "declared again: all is replaced", Given: []projecttest.Fact{declared}, When: everything,
			Then: `{"name":"holiday","declared":"2026-01-01T00:02:00Z"}`,
		},
		{
			Name: "lifted: what was declared stays", Given: []projecttest.Fact{declared}, When: lifted,
			Then: said + `,"ended":"2026-01-01T00:02:00Z"}`,
		},
		{
			Name: "lifted again", Given: []projecttest.Fact{declared, lifted}, When: lifted,
			Then: said + `,"ended":"2026-01-01T00:03:00Z"}`,
		},
		{
			Name: "declared after it was lifted", Given: []projecttest.Fact{declared, lifted}, When: everything,
			Then: `{"name":"holiday","declared":"2026-01-01T00:03:00Z"}`,
		},
		{Name: "lifted without being declared", When: lifted, Fails: perkey.ErrUntold.Error()},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, freezes.New, false)
}
