package tracks_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/perkey"
	"catenary/projections/tracks"
	"catenary/projections/viewtest"
)

func track(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateTrack, Key: "shops"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	spec := events.TrackSpec{Track: "shops", Modules: []string{"web", "db"}, Strategy: "canary", On: events.OnMerge}
	other := events.TrackSpec{Track: "shops", Modules: []string{"web"}, Strategy: "plain", On: events.OnManual}
	declared, changed, ended := track(events.TrackDeclared{TrackSpec: spec}), track(events.TrackChanged{TrackSpec: other}), track(events.TrackEnded{Reason: "enough"})
	const first = `{"track":"shops","modules":["web","db"],"strategy":"canary","on":"merge"`
	const second = `{"track":"shops","modules":["web"],"strategy":"plain","on":"manual"`
	viewtest.Check(t, tracks.New, []viewtest.Row{
		{Name: "declared", When: declared, Then: first + `,"declared":"2026-01-01T00:01:00Z"}`},
		{Name: "changed: since when it holds stays", Given: []projecttest.Fact{declared}, When: changed, Then: second + `,"declared":"2026-01-01T00:01:00Z"}`},
		{Name: "ended: what it was stays", Given: []projecttest.Fact{declared}, When: ended, Then: first + `,"declared":"2026-01-01T00:01:00Z","ended":"2026-01-01T00:02:00Z"}`},
		{Name: "declared after it ended", Given: []projecttest.Fact{declared, ended}, When: declared, Then: first + `,"declared":"2026-01-01T00:03:00Z"}`},
		{Name: "changed without being declared", When: changed, Fails: perkey.ErrUntold.Error()},
		{Name: "ended without being declared", When: ended, Fails: perkey.ErrUntold.Error()},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, tracks.New, false)
}
