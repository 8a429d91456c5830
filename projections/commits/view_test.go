package commits_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/commits"
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
	check(t, []scenario{
		{name: "recorded", when: recorded, then: all},
		{name: "recorded again", given: []projecttest.Fact{recorded}, when: recorded, then: all},
		{
			name: "heard of when it was recorded, if nothing else is said",
			when: projecttest.Fact{Ref: ref, Effective: merged, Data: events.CommitRecorded{Repository: "git.example/shop", Commit: "c0ffee"}},
			then: `{"repository":"git.example/shop","commit":"c0ffee","heard":"2026-01-01T00:01:00Z"}`,
		},
		{
			name: "told of another", when: projecttest.Fact{Ref: ref, Data: events.CommitRecorded{Repository: "git", Commit: "c0ffee"}},
			fails: "a record of git.c0ffee stands under key git=2Eexample=2Fshop.c0ffee",
		},
	})
}

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), commits.New).Given(c.given...).When(c.when)
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
	_, err := commits.New().Fold(es.Event{Sequence: 7, Type: "commit.later.v1", Ref: es.Ref{Aggregate: "commit", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
