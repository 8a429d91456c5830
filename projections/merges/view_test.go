package merges_test

import (
	"testing"
	"time"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/merges"
	"catenary/projections/perkey"
	"catenary/projections/viewtest"
)

func merge(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateMerge, Key: "shop.main.c1"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	held := merge(events.MergeHeld{
		Repository: "shop", Branch: "main", Commit: "c1", Merged: at, Heard: at, Event: events.Raw(`{ "n": 1.0 }`), Alone: true, Waiting: "not planned",
	})
	taken, placed := merge(events.MergeTaken{Rollout: "r1"}), merge(events.MergeReleased{Placed: true})
	const named = `{"repository":"shop","branch":"main","commit":"c1"`
	const said = named + `,"merged":"2026-05-01T12:00:00Z","heard":"2026-05-01T12:00:00Z","event":{ "n": 1.0 },"alone":true`
	viewtest.Check(t, merges.New, []viewtest.Row{
		{Name: "held", When: held, Then: said + `,"waiting":"not planned"}`},
		{Name: "taken: it waits still", Given: []projecttest.Fact{held}, When: taken, Then: said + `,"waiting":"not planned","rollout":"r1"}`},
		{Name: "placed", Given: []projecttest.Fact{held, taken}, When: placed, Then: said + `,"placed":"2026-01-01T00:03:00Z","rollout":"r1"}`},
		{Name: "let go", Given: []projecttest.Fact{held}, When: merge(events.MergeReleased{Reason: "by hand"}), Then: said + `}`},
		{
			Name: "held again: it stays with its rollout", Given: []projecttest.Fact{held, taken, placed},
			When: merge(events.MergeHeld{Repository: "shop", Branch: "main", Commit: "c1", Waiting: "once more"}),
			Then: named + `,"waiting":"once more","rollout":"r1"}`,
		},
		{Name: "taken without being held", When: taken, Fails: perkey.ErrUntold.Error()},
		{Name: "released without being held", When: placed, Fails: perkey.ErrUntold.Error()},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, merges.New, false)
}
