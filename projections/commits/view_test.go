package commits_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/commits"
	"catenary/projections/viewtest"
)

func TestView(t *testing.T) {
	t.Parallel()
	ref := es.Ref{Aggregate: events.AggregateCommit, Key: es.Key("git.example/shop", "c0ffee")}
	merged := projecttest.Recorded(0).AddDate(0, 0, -1)
	recorded := projecttest.Fact{Ref: ref, Effective: merged, Data: events.CommitRecorded{
		Repository: "git.example/shop", Branch: "main", Commit: "c0ffee", Merged: merged, Heard: merged.Add(1_500_000), Author: "a7",
	}}
	const all = `{"repository":"git.example/shop","branch":"main","commit":"c0ffee","merged":"2025-12-31T00:00:00Z",` +
		`"heard":"2025-12-31T00:00:00.0015Z","author":"a7"}`
	viewtest.Check(t, commits.New, []viewtest.Row{
		{Name: "recorded", When: recorded, Then: all},
		{Name: "recorded again", Given: []projecttest.Fact{recorded}, When: recorded, Then: all},
		{
			Name: "heard of when it was recorded, if nothing else is said",
			When: projecttest.Fact{Ref: ref, Effective: merged, Data: events.CommitRecorded{Repository: "git.example/shop", Commit: "c0ffee"}},
			Then: `{"repository":"git.example/shop","commit":"c0ffee","heard":"2026-01-01T00:01:00Z"}`,
		},
		{
			Name: "told of another", When: projecttest.Fact{Ref: ref, Data: events.CommitRecorded{Repository: "git", Commit: "c0ffee"}},
			Fails: "a record of git.c0ffee stands under key git=2Eexample=2Fshop.c0ffee",
		},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, commits.New, false)
}
