package backfill_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/backfill"
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
	const value = `{"node":"n1","module":"web","assigned":"2025-01-01T00:00:00Z","required-by":["shop"],"provisioning":{ "replicas": 3.0 }` + "\n" +
		`,"build":"b1","artifact":"sha256:ab","commit":"c1","rollout":"r1","since":"2025-01-01T00:00:00Z"}`
	check(t, []scenario{
		{name: "assigned", when: assigned, then: value},
		{name: "assigned again: nothing follows from what was added before", given: []projecttest.Fact{ended, assigned}, when: assigned, then: value},
		{name: "ended", given: []projecttest.Fact{assigned}, when: ended, then: `{"node":"n1","module":"web","ended":"2025-01-01T00:00:00Z"}`},
		{name: "not backfilled", when: standing},
		{
			name: "told of another", when: projecttest.Fact{Ref: es.Ref{Aggregate: ref.Aggregate, Key: "n2.web"}, Data: assigned.Data, Backfill: true},
			fails: "chain-backfill: event 1 (assignment.assigned.v1 of assignment n2.web): it tells of n1.web",
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

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), backfill.New).Given(c.given...).When(c.when)
			switch {
			case c.fails != "":
				outcome.ThenFails(c.fails)
			case c.then == "":
				outcome.ThenNothing()
			default:
				outcome.Then(project.Value{Key: "assignment." + c.when.Ref.Key, Data: []byte(c.then)})
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
	_, err := backfill.New().Fold(es.Event{Sequence: 7, Backfill: true, Type: "assignment.later.v1", Ref: es.Ref{Aggregate: "assignment", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
