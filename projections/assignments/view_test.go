package assignments_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/assignments"
	"catenary/projections/perkey"
	"catenary/projections/viewtest"
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
	port := func(changed ...string) projecttest.Fact {
		data := told("1")
		data.Inputs = []events.Handed{{StepName: events.StepName{Node: "n1", Module: "db"}, Values: map[string]string{"port": "1"}, Changed: changed}}
		return n1(events.AssignmentAssigned{Told: data})
	}
	handed, handedFirst := port(), port("port")
	requiredBy := n1(events.AssignmentAssigned{Told: told("1")})
	for _, by := range []string{"pay", "shop"} {
		data := requiredBy.Data.(events.AssignmentAssigned)
		data.RequiredBy = append(data.RequiredBy, by)
		requiredBy.Data = data
	}
	backfilled := next
	backfilled.Backfill = true
	facts := func(f ...projecttest.Fact) []projecttest.Fact { return f }
	viewtest.Check(t, assignments.New, []viewtest.Row{
		{Name: "assigned", When: assigned, Then: head + first + v1 + since1 + `,"told":1}`},
		{
			Name: "assigned, all that can be told", When: whole,
			Then: head + first + `"required-by":["shop"],"provisioning":{ "replicas": 3.0 }` + "\n" +
				`,"build":"b1","artifact":"sha256:ab","commit":"c1","rollout":"r1",` + since1 + `,"told":1}`,
		},
		{
			Name: "handed something: told since then", Given: facts(assigned), When: handed,
			Then: head + first + v1 + since2 + `,"told":2,"inputs":[{"node":"n1","module":"db","values":{"port":"1"}}]}`,
		},
		{
			Name: "the same again, and no news any more", Given: facts(handedFirst), When: handed,
			Then: head + first + v1 + since1 + `,"told":2,"inputs":[{"node":"n1","module":"db","values":{"port":"1"}}]}`,
		},
		{
			Name: "another version: it came to the node before", Given: facts(assigned), When: next,
			Then: head + first + v2 + since2 + `,"told":2}`,
		},
		{
			Name: "the same again: told since the first time", Given: facts(assigned), When: assigned,
			Then: head + first + v1 + since1 + `,"told":2}`,
		},
		{
			Name: "the same for other modules' sake", Given: facts(assigned), When: requiredBy,
			Then: head + first + `"required-by":["pay","shop"],` + v1 + since1 + `,"told":2}`,
		},
		{
			Name: "other provisioning is told anew", Given: facts(assigned), When: n1(events.AssignmentAssigned{Told: events.Told{
				Node: "n1", Module: "web", Reference: version("1"), Build: "b1", Commit: "c1", Provisioning: events.Raw(`{}`),
			}}),
			Then: head + first + `"provisioning":{},` + v1 + since2 + `,"told":2}`,
		},
		{Name: "ended: what was told stays", Given: facts(assigned), When: ended, Then: head + first + v1 + since1 + `,"ended":"2026-01-01T00:02:00Z","told":2}`},
		{Name: "ended again", Given: facts(assigned, ended), When: ended, Then: head + first + v1 + since1 + `,"ended":"2026-01-01T00:03:00Z","told":3}`},
		{
			Name: "assigned after it ended: it came anew", Given: facts(assigned, ended), When: assigned,
			Then: head + `"assigned":"2026-01-01T00:03:00Z",` + v1 + since3 + `,"told":3}`,
		},
		{Name: "moved in", When: movedIn, Then: head + first + v1 + since1 + `,"told":1}`},
		{Name: "moved in after it ended", Given: facts(assigned, ended), When: movedIn, Then: head + `"assigned":"2026-01-01T00:03:00Z",` + v1 + since3 + `,"told":3}`},
		{Name: "moved out", Given: facts(assigned), When: movedOut, Then: head + first + v1 + since1 + `,"ended":"2026-01-01T00:02:00Z","told":2}`},
		{Name: "pended: it has not come yet", When: pended, Then: head + v2 + since1 + `,"state":"pending","told":1}`},
		{Name: "pended, in no state that is named", When: n1(events.AssignmentPended{Told: told("2")}), Then: head + v2 + since1 + `,"state":"pending","told":1}`},
		{Name: "pended after it ended", Given: facts(assigned, ended), When: pended, Then: head + v2 + since3 + `,"state":"pending","told":3}`},
		{Name: "assigned after it was pended", Given: facts(pended), When: next, Then: head + second + v2 + since2 + `,"told":2}`},
		{Name: "ended while pended", Given: facts(pended), When: ended, Then: head + v2 + since1 + `,"ended":"2026-01-01T00:02:00Z","told":2}`},
		{
			Name: "at its effective time",
			When: projecttest.Fact{Ref: assigned.Ref, Data: assigned.Data, Effective: projecttest.Recorded(0).AddDate(-1, 0, 0)},
			Then: head + `"assigned":"2025-01-01T00:00:00Z",` + v1 + `"since":"2025-01-01T00:00:00Z","told":1}`,
		},
		{Name: "backfilled: nothing that stands is changed", Given: facts(assigned), When: backfilled},
		{Name: "ended without being told", When: ended, Fails: perkey.ErrUntold.Error()},
		{Name: "moved out without being told", When: movedOut, Fails: perkey.ErrUntold.Error()},
		{
			Name: "told of another", When: n1(events.AssignmentAssigned{Told: events.Told{Node: "n2", Module: "web"}}),
			Fails: "a record of n2.web stands under key n1.web",
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
	viewtest.Check(t, assignments.New, []viewtest.Row{
		{Name: "applied", Given: facts(assigned), When: applied, Then: is1 + `"told":1,"observed":{` + runs1 + at2 + `}}`},
		{Name: "applied again", Given: facts(assigned, applied), When: applied, Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `}}`},
		{
			Name: "applied clears drift and health", Given: facts(assigned, unhealthy, drifted), When: applied,
			Then: is1 + `"told":1,"observed":{` + runs1 + at4 + `}}`,
		},
		{Name: "healthy", Given: facts(assigned, applied), When: healthy, Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `,"healthy":true}}`},
		{Name: "unhealthy", Given: facts(assigned, healthy), When: unhealthy, Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `,"healthy":false}}`},
		{
			Name: "a report that does not repeat what runs", Given: facts(assigned, healthy), When: unhealthyOnly,
			Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `,"healthy":false}}`,
		},
		{
			Name: "drifted: health is as it was", Given: facts(assigned, unhealthy), When: drifted,
			Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `,"healthy":false,"drift":"changed <by hand>"}}`,
		},
		{
			Name: "drifted to something else, whose health is not known", Given: facts(assigned, healthy), When: driftedOther,
			Then: is1 + `"told":1,"observed":{` + runs2 + at3 + `,"drift":"runs 2"}}`,
		},
		{
			Name: "healthy does not end a drift", Given: facts(assigned, drifted), When: healthy,
			Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `,"healthy":true,"drift":"changed <by hand>"}}`,
		},
		{
			Name: "the health of something else", Given: facts(assigned, drifted), When: healthyOther,
			Then: is1 + `"told":1,"observed":{` + runs2 + at3 + `,"healthy":true}}`,
		},
		{Name: "could not be applied: what runs is as it was", Given: facts(assigned, healthy), When: applyFailed, Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `,"healthy":true}}`},
		{Name: "could not be applied, the first report", Given: facts(assigned), When: applyFailed, Then: is1 + `"told":1,"observed":{` + at2 + `}}`},
		{
			Name: "removed", Given: facts(assigned, healthy, drifted), When: removed,
			Then: is1 + `"told":1,"observed":{` + at4 + `}}`,
		},
		{Name: "could not be removed", Given: facts(assigned, healthy), When: removeFailed, Then: is1 + `"told":1,"observed":{` + runs1 + at3 + `,"healthy":true}}`},
		{
			Name: "told something else: the last report stays", Given: facts(assigned, applied), When: next,
			Then: is2 + since3 + `,"told":3,"observed":{` + runs1 + at2 + `}}`,
		},
		{
			Name: "ended: the last report stays", Given: facts(assigned, applied), When: ended,
			Then: is1 + `"ended":"2026-01-01T00:03:00Z","told":3,"observed":{` + runs1 + at2 + `}}`,
		},
		{
			Name: "assigned after it ended: the last report stays", Given: facts(assigned, applied, ended), When: assigned,
			Then: head + `"assigned":"2026-01-01T00:04:00Z",` + v1 + `"since":"2026-01-01T00:04:00Z","told":4,"observed":{` + runs1 + at2 + `}}`,
		},
		{
			Name: "a report after it ended does not make it stand", Given: facts(assigned, ended), When: removed,
			Then: is1 + `"ended":"2026-01-01T00:02:00Z","told":2,"observed":{` + at3 + `}}`,
		},
		{Name: "observed without being told", When: applied, Fails: perkey.ErrUntold.Error()},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, assignments.New, false)
}
