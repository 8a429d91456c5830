package nodes_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/nodes"
	"catenary/projections/perkey"
	"catenary/projections/viewtest"
)

func n1(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateNode, Key: "n1"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	registered := n1(events.NodeRegistered{Node: "n1", Labels: map[string]string{"zone": "b", "rack": "1"}, ManagedBy: events.ManagedByAgent})
	relabelled := n1(events.NodeRelabelled{Labels: map[string]string{"zone": "c"}})
	retired := n1(events.NodeRetired{Reason: "old"})
	viewtest.Check(t, nodes.New, []viewtest.Row{
		{
			Name: "registered", When: registered,
			Then: `{"node":"n1","labels":{"rack":"1","zone":"b"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			Name: "relabelled", Given: []projecttest.Fact{registered}, When: relabelled,
			Then: `{"node":"n1","labels":{"zone":"c"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			Name: "the same labels again", Given: []projecttest.Fact{registered, relabelled}, When: relabelled,
			Then: `{"node":"n1","labels":{"zone":"c"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			Name: "all labels taken off", Given: []projecttest.Fact{registered}, When: n1(events.NodeRelabelled{}),
			Then: `{"node":"n1","managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			Name: "retired", Given: []projecttest.Fact{registered, relabelled}, When: retired,
			Then: `{"node":"n1","labels":{"zone":"c"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z","retired":"2026-01-01T00:03:00Z"}`,
		},
		{
			Name: "registered after it retired", Given: []projecttest.Fact{registered, retired},
			When: n1(events.NodeRegistered{Node: "n1", ManagedBy: events.ManagedByExternal}),
			Then: `{"node":"n1","managed-by":"external","registered":"2026-01-01T00:03:00Z"}`,
		},
		{Name: "relabelled without being known", When: relabelled, Fails: perkey.ErrUntold.Error()},
		{Name: "retired without being known", When: retired, Fails: perkey.ErrUntold.Error()},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, nodes.New, false)
}
