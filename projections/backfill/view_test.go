package backfill_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/backfill"
	"catenary/projections/viewtest"
)

func TestView(t *testing.T) {
	t.Parallel()
	ref := es.Ref{Aggregate: events.AggregateAssignment, Key: "n1.web"}
	at := projecttest.Recorded(0).AddDate(-1, 0, 0)
	fact := func(data any) projecttest.Fact {
		return projecttest.Fact{Ref: ref, Data: data, Effective: at, Backfill: true, Actor: "a1"}
	}
	told := events.Told{
		Node: "n1", Module: "web", Reference: events.Reference{Artifact: "sha256:ab"}, Build: "b1", Commit: "c1", Rollout: "r1",
		RequiredBy: []string{"shop"}, Provisioning: events.Raw("{ \"replicas\": 3.0 }\n"), Reason: "not shown",
	}
	seen := events.Seen{Node: "n1", Module: "web"}
	assigned := fact(events.AssignmentAssigned{Told: told})
	standing := assigned
	standing.Backfill = false
	ended := fact(events.AssignmentEnded{Node: "n1", Module: "web", Reason: "no more"})
	const key = "assignment.n1.web"
	const value = `{"node":"n1","module":"web","assigned":"2025-01-01T00:00:00Z","required-by":["shop"],"provisioning":{ "replicas": 3.0 }` + "\n" +
		`,"build":"b1","artifact":"sha256:ab","commit":"c1","rollout":"r1","since":"2025-01-01T00:00:00Z"}`
	viewtest.Check(t, backfill.New, []viewtest.Row{
		{Name: "assigned", When: assigned, Then: value, Key: key},
		{Name: "assigned again: nothing follows from what was added before", Given: []projecttest.Fact{ended, assigned}, When: assigned, Then: value, Key: key},
		{Name: "ended", Given: []projecttest.Fact{assigned}, When: ended, Then: `{"node":"n1","module":"web","ended":"2025-01-01T00:00:00Z"}`, Key: key},
		{Name: "not backfilled", When: standing},
		{
			Name: "told of another", When: projecttest.Fact{Ref: es.Ref{Aggregate: ref.Aggregate, Key: "n2.web"}, Data: assigned.Data, Backfill: true},
			Fails: "chain-backfill: event 1 (assignment.assigned.v1 of assignment n2.web): it tells of n1.web",
		},
	})
	for _, data := range []any{
		events.AssignmentMovedIn{Told: told}, events.AssignmentMovedOut{Node: "n1", Module: "web"}, events.AssignmentPended{Told: told},
		events.AssignmentApplied{Seen: seen}, events.AssignmentApplyFailed{Seen: seen}, events.AssignmentHealthy{Seen: seen},
		events.AssignmentUnhealthy{Seen: seen}, events.AssignmentRemoved{Seen: seen}, events.AssignmentRemoveFailed{Seen: seen},
		events.AssignmentDrifted{Seen: seen},
	} {
		projecttest.Spec(t, events.Registry(), backfill.New).When(fact(data)).ThenFails("only assigning and ending can be added")
	}
}

func TestLoadRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, value string }{
		"of another kind":   {"node.n1", `{"node":"n1"}`},
		"of another record": {"assignment.n1.web", `{"node":"n1","module":"db"}`},
		"not JSON":          {"assignment.n1.web", `{"node":`},
	} {
		if err := backfill.New().Load(c.key, []byte(c.value)); err == nil {
			t.Errorf("a value %s was taken", name)
		}
	}
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, backfill.New, true)
}
