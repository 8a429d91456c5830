package assignments_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/assignments"
	"catenary/projections/perkey"
)

func n1(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateAssignment, Key: "n1.web"}, Data: data, Actor: "a1"}
}

func version(v string) events.Reference {
	return events.Reference{Package: &events.Package{Name: "web", Version: v}}
}

func told(v string) events.Told {
	return events.Told{Node: "n1", Module: "web", Reference: version(v), Build: "b" + v, Commit: "c" + v}
}

func seen(v string) events.Seen {
	return events.Seen{Node: "n1", Module: "web", Reference: version(v), Build: "b" + v}
}

// Parts of records as they stand in a bucket.
const (
	head   = `{"node":"n1","module":"web",`
	first  = `"assigned":"2026-01-01T00:01:00Z",`
	second = `"assigned":"2026-01-01T00:02:00Z",`
	since1 = `"since":"2026-01-01T00:01:00Z"`
	since2 = `"since":"2026-01-01T00:02:00Z"`
	since3 = `"since":"2026-01-01T00:03:00Z"`
	v1     = `"build":"b1","package":{"name":"web","version":"1"},"commit":"c1",`
	v2     = `"build":"b2","package":{"name":"web","version":"2"},"commit":"c2",`
	runs1  = `"build":"b1","package":{"name":"web","version":"1"},`
	runs2  = `"build":"b2","package":{"name":"web","version":"2"},`
)

func TestTold(t *testing.T) {
	t.Parallel()
	assigned, next := n1(events.AssignmentAssigned{Told: told("1")}), n1(events.AssignmentAssigned{Told: told("2")})
	ended := n1(events.AssignmentEnded{Node: "n1", Module: "web", Reason: "no more"})
	movedIn := n1(events.AssignmentMovedIn{Told: told("1"), From: "n9"})
	movedOut := n1(events.AssignmentMovedOut{Node: "n1", Module: "web", To: "n9"})
	pended := n1(events.AssignmentPended{Told: told("2"), State: events.StatePending})
	whole := n1(events.AssignmentAssigned{Told: events.Told{
		Node: "n1", Module: "web", Reference: events.Reference{Artifact: "sha256:ab"}, Build: "b1", Commit: "c1", Rollout: "r1",
		RequiredBy: []string{"shop"}, Provisioning: events.Raw("{ \"replicas\": 3.0 }\n"), Reason: "not shown",
	}})
	requiredBy := n1(events.AssignmentAssigned{Told: told("1")})
	for _, by := range []string{"pay", "shop"} {
		data := requiredBy.Data.(events.AssignmentAssigned)
		data.RequiredBy = append(data.RequiredBy, by)
		requiredBy.Data = data
	}
	backfilled := next
	backfilled.Backfill = true
	facts := func(f ...projecttest.Fact) []projecttest.Fact { return f }
	check(t, []scenario{
		{name: "assigned", when: assigned, then: head + first + v1 + since1 + `}`},
		{
			name: "assigned, all that can be told", when: whole,
			then: head + first + `"required-by":["shop"],"provisioning":{ "replicas": 3.0 }` + "\n" +
				`,"build":"b1","artifact":"sha256:ab","commit":"c1","rollout":"r1",` + since1 + `}`,
		},
		{
			name: "another version: it came to the node before", given: facts(assigned), when: next,
			then: head + first + v2 + since2 + `}`,
		},
		{
			name: "the same again: told since the first time", given: facts(assigned), when: assigned,
			then: head + first + v1 + since1 + `}`,
		},
		{
			name: "the same for other modules' sake", given: facts(assigned), when: requiredBy,
			then: head + first + `"required-by":["pay","shop"],` + v1 + since1 + `}`,
		},
		{
			name: "other provisioning is told anew", given: facts(assigned), when: n1(events.AssignmentAssigned{Told: events.Told{
				Node: "n1", Module: "web", Reference: version("1"), Build: "b1", Commit: "c1", Provisioning: events.Raw(`{}`),
			}}),
			then: head + first + `"provisioning":{},` + v1 + since2 + `}`,
		},
		{name: "ended: what was told stays", given: facts(assigned), when: ended, then: head + first + v1 + since1 + `,"ended":"2026-01-01T00:02:00Z"}`},
		{name: "ended again", given: facts(assigned, ended), when: ended, then: head + first + v1 + since1 + `,"ended":"2026-01-01T00:03:00Z"}`},
		{
			name: "assigned after it ended: it came anew", given: facts(assigned, ended), when: assigned,
			then: head + `"assigned":"2026-01-01T00:03:00Z",` + v1 + since3 + `}`,
		},
		{name: "moved in", when: movedIn, then: head + first + v1 + since1 + `}`},
		{name: "moved in after it ended", given: facts(assigned, ended), when: movedIn, then: head + `"assigned":"2026-01-01T00:03:00Z",` + v1 + since3 + `}`},
		{name: "moved out", given: facts(assigned), when: movedOut, then: head + first + v1 + since1 + `,"ended":"2026-01-01T00:02:00Z"}`},
		{name: "pended: it has not come yet", when: pended, then: head + v2 + since1 + `,"state":"pending"}`},
		{name: "pended, in no state that is named", when: n1(events.AssignmentPended{Told: told("2")}), then: head + v2 + since1 + `,"state":"pending"}`},
		{name: "pended after it ended", given: facts(assigned, ended), when: pended, then: head + v2 + since3 + `,"state":"pending"}`},
		{name: "assigned after it was pended", given: facts(pended), when: next, then: head + second + v2 + since2 + `}`},
		{name: "ended while pended", given: facts(pended), when: ended, then: head + v2 + since1 + `,"ended":"2026-01-01T00:02:00Z"}`},
		{
			name: "at its effective time",
			when: projecttest.Fact{Ref: assigned.Ref, Data: assigned.Data, Effective: projecttest.Recorded(0).AddDate(-1, 0, 0)},
			then: head + `"assigned":"2025-01-01T00:00:00Z",` + v1 + `"since":"2025-01-01T00:00:00Z"}`,
		},
		{name: "backfilled: nothing that stands is changed", given: facts(assigned), when: backfilled},
		{name: "ended without being told", when: ended, fails: perkey.ErrUntold.Error()},
		{name: "moved out without being told", when: movedOut, fails: perkey.ErrUntold.Error()},
		{
			name: "told of another", when: n1(events.AssignmentAssigned{Told: events.Told{Node: "n2", Module: "web"}}),
			fails: "a record of n2.web stands under key n1.web",
		},
	})
}

func TestObserved(t *testing.T) {
	t.Parallel()
	assigned := n1(events.AssignmentAssigned{Told: told("1")})
	next := n1(events.AssignmentAssigned{Told: told("2")})
	ended := n1(events.AssignmentEnded{Node: "n1", Module: "web"})
	applied := n1(events.AssignmentApplied{Seen: seen("1")})
	applyFailed := n1(events.AssignmentApplyFailed{Seen: seen("2")})
	healthy, unhealthy := n1(events.AssignmentHealthy{Seen: seen("1")}), n1(events.AssignmentUnhealthy{Seen: seen("1")})
	healthyOther := n1(events.AssignmentHealthy{Seen: seen("2")})
	unhealthyOnly := n1(events.AssignmentUnhealthy{Seen: events.Seen{Node: "n1", Module: "web"}})
	removed := n1(events.AssignmentRemoved{Seen: seen("1")})
	removeFailed := n1(events.AssignmentRemoveFailed{Seen: seen("1")})
	drifted := n1(events.AssignmentDrifted{Seen: seen("1"), Drift: "changed <by hand>"})
	driftedOther := n1(events.AssignmentDrifted{Seen: seen("2"), Drift: "runs 2"})
	const (
		is1 = head + first + v1 + since1 + `,`
		is2 = head + first + v2
		at2 = `"at":"2026-01-01T00:02:00Z"`
		at3 = `"at":"2026-01-01T00:03:00Z"`
		at4 = `"at":"2026-01-01T00:04:00Z"`
	)
	facts := func(f ...projecttest.Fact) []projecttest.Fact { return f }
	check(t, []scenario{
		{name: "applied", given: facts(assigned), when: applied, then: is1 + `"observed":{` + runs1 + at2 + `}}`},
		{name: "applied again", given: facts(assigned, applied), when: applied, then: is1 + `"observed":{` + runs1 + at3 + `}}`},
		{
			name: "applied clears drift and health", given: facts(assigned, unhealthy, drifted), when: applied,
			then: is1 + `"observed":{` + runs1 + at4 + `}}`,
		},
		{name: "healthy", given: facts(assigned, applied), when: healthy, then: is1 + `"observed":{` + runs1 + at3 + `,"healthy":true}}`},
		{name: "unhealthy", given: facts(assigned, healthy), when: unhealthy, then: is1 + `"observed":{` + runs1 + at3 + `,"healthy":false}}`},
		{
			name: "a report that does not repeat what runs", given: facts(assigned, healthy), when: unhealthyOnly,
			then: is1 + `"observed":{` + runs1 + at3 + `,"healthy":false}}`,
		},
		{
			name: "drifted: health is as it was", given: facts(assigned, unhealthy), when: drifted,
			then: is1 + `"observed":{` + runs1 + at3 + `,"healthy":false,"drift":"changed <by hand>"}}`,
		},
		{
			name: "drifted to something else, whose health is not known", given: facts(assigned, healthy), when: driftedOther,
			then: is1 + `"observed":{` + runs2 + at3 + `,"drift":"runs 2"}}`,
		},
		{
			name: "healthy does not end a drift", given: facts(assigned, drifted), when: healthy,
			then: is1 + `"observed":{` + runs1 + at3 + `,"healthy":true,"drift":"changed <by hand>"}}`,
		},
		{
			name: "the health of something else", given: facts(assigned, drifted), when: healthyOther,
			then: is1 + `"observed":{` + runs2 + at3 + `,"healthy":true}}`,
		},
		{name: "could not be applied: what runs is as it was", given: facts(assigned, healthy), when: applyFailed, then: is1 + `"observed":{` + runs1 + at3 + `,"healthy":true}}`},
		{name: "could not be applied, the first report", given: facts(assigned), when: applyFailed, then: is1 + `"observed":{` + at2 + `}}`},
		{
			name: "removed", given: facts(assigned, healthy, drifted), when: removed,
			then: is1 + `"observed":{` + at4 + `}}`,
		},
		{name: "could not be removed", given: facts(assigned, healthy), when: removeFailed, then: is1 + `"observed":{` + runs1 + at3 + `,"healthy":true}}`},
		{
			name: "told something else: the last report stays", given: facts(assigned, applied), when: next,
			then: is2 + since3 + `,"observed":{` + runs1 + at2 + `}}`,
		},
		{
			name: "ended: the last report stays", given: facts(assigned, applied), when: ended,
			then: is1 + `"ended":"2026-01-01T00:03:00Z","observed":{` + runs1 + at2 + `}}`,
		},
		{
			name: "assigned after it ended: the last report stays", given: facts(assigned, applied, ended), when: assigned,
			then: head + `"assigned":"2026-01-01T00:04:00Z",` + v1 + `"since":"2026-01-01T00:04:00Z","observed":{` + runs1 + at2 + `}}`,
		},
		{
			name: "a report after it ended does not make it stand", given: facts(assigned, ended), when: removed,
			then: is1 + `"ended":"2026-01-01T00:02:00Z","observed":{` + at3 + `}}`,
		},
		{name: "observed without being told", when: applied, fails: perkey.ErrUntold.Error()},
	})
}

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), assignments.New).Given(c.given...).When(c.when)
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
	_, err := assignments.New().Fold(es.Event{Sequence: 7, Type: "assignment.later.v1", Ref: es.Ref{Aggregate: "assignment", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
