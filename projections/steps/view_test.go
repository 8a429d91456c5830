package steps_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/perkey"
	"catenary/projections/steps"
	"catenary/projections/viewtest"
)

func rollout(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateRollout, Key: "r=2E1"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	n1 := events.StepName{Node: "n1", Module: "web"}
	version := events.Version{Reference: events.Reference{Artifact: "sha256:1"}, Build: "b1", Commit: "c1"}
	planned := rollout(events.RolloutStepsPlanned{Part: 1, Steps: []events.PlannedStep{
		{Tier: "all", StepName: n1, After: &version, Tried: 1, WaitsFor: []events.WaitFor{{StepName: events.StepName{Node: "n1", Module: "db"}, Notify: true}}},
	}})
	begun := rollout(events.RolloutStepBegun{Tier: "all", StepName: n1, Attempt: 2})
	inputs := []events.Handed{{StepName: events.StepName{Node: "n1", Module: "db"}, Values: map[string]string{"port": "5432"}, Changed: []string{"port"}}}
	handed := rollout(events.RolloutStepBegun{Tier: "all", StepName: n1, Attempt: 2, Inputs: inputs})
	done := rollout(events.RolloutStepEnded{
		Tier: "all", StepName: n1, Attempt: 2, By: events.SettledByReport,
		StepResult: events.StepResult{Outcome: "done", Reported: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Outputs: map[string]string{"port": "80"}, Driver: &events.Driver{Name: "oci"}},
	})
	failed := rollout(events.RolloutStepEnded{Tier: "all", StepName: n1, Attempt: 2, By: events.SettledByReport, Again: true, StepResult: events.StepResult{Outcome: "failed", Reason: "exit 1"}})
	retried := rollout(events.RolloutStepRetried{Tier: "all", StepName: n1, From: "failed", Reason: "once more"})
	const key, head = "r=2E1.all.n1.web", `{"rollout":"r.1","tier":"all","node":"n1","module":"web"`
	const change = `,"after":{"artifact":"sha256:1","build":"b1","commit":"c1"},"waits-for":[{"node":"n1","module":"db","notify":true}]`
	const sent = `,"sent":"2026-01-01T00:02:00Z"`
	viewtest.Check(t, steps.New, []viewtest.Row{
		{Name: "planned", When: planned, Key: key, Then: head + change + `,"tried":1}`},
		{Name: "begun", Given: []projecttest.Fact{planned}, When: begun, Key: key, Then: head + `,"attempt":2` + sent + change + `,"tried":1}`},
		{
			Name: "begun, and handed something", Given: []projecttest.Fact{planned}, When: handed, Key: key,
			Then: head + `,"attempt":2` + sent + change + `,"inputs":[{"node":"n1","module":"db","values":{"port":"5432"},"changed":["port"]}],"tried":1}`,
		},
		{
			Name: "begun again, and handed nothing", Given: []projecttest.Fact{planned, handed, failed}, When: begun, Key: key,
			Then: head + `,"attempt":2,"sent":"2026-01-01T00:04:00Z"` + change + `,"tried":2}`,
		},
		{
			Name: "done", Given: []projecttest.Fact{planned, begun}, When: done, Key: key,
			Then: head + `,"attempt":2,"driver":{"name":"oci"},"outcome":"done","by":"report"` + sent + `,"reported":"2026-05-01T00:00:00Z","ended":"2026-01-01T00:03:00Z"` + change + `,"outputs":{"port":"80"},"tried":1}`,
		},
		{
			Name: "failed, to be tried again", Given: []projecttest.Fact{planned, begun}, When: failed, Key: key,
			Then: head + `,"attempt":2,"outcome":"failed","by":"report","reason":"exit 1","again":true` + sent + `,"reported":"2026-01-01T00:03:00Z","ended":"2026-01-01T00:03:00Z"` + change + `,"tried":2}`,
		},
		{Name: "begun again", Given: []projecttest.Fact{planned, begun, failed}, When: begun, Key: key, Then: head + `,"attempt":2,"sent":"2026-01-01T00:04:00Z"` + change + `,"tried":2}`},
		{Name: "retried: its tries count from none", Given: []projecttest.Fact{planned, begun, failed}, When: retried, Key: key, Then: head + `,"attempt":2,"reason":"once more"` + change + `}`},
		{Name: "what happens to the rollout is no matter", Given: []projecttest.Fact{planned, begun}, When: rollout(events.RolloutAborted{})},
		{Name: "begun without being planned", When: begun, Fails: perkey.ErrUntold.Error()},
	})
}

// TestAPartIsManyRecords holds that each step of a part has its own, and that a part which can't be folded leaves none.
func TestAPartIsManyRecords(t *testing.T) {
	t.Parallel()
	part := func(nodes ...string) es.Event {
		data := events.RolloutStepsPlanned{Part: 1}
		for _, n := range nodes {
			data.Steps = append(data.Steps, events.PlannedStep{Tier: "all", StepName: events.StepName{Node: n, Module: "web"}})
		}
		return es.Event{Sequence: 7, Type: events.TypeRolloutStepsPlanned, Ref: es.Ref{Aggregate: events.AggregateRollout, Key: "r1"}, Data: data}
	}
	v := steps.New()
	for name, e := range map[string]es.Event{"twice the same": part("n1", "n2", "n1"), "no text": part("n1", "n\xff")} {
		if values, err := v.Fold(e); err == nil {
			t.Errorf("%s: gave %v", name, values)
		}
	}
	begun := es.Event{Sequence: 8, Type: events.TypeRolloutStepBegun, Ref: es.Ref{Aggregate: events.AggregateRollout, Key: "r1"}, Data: events.RolloutStepBegun{Tier: "all", StepName: events.StepName{Node: "n1", Module: "web"}}}
	if values, err := v.Fold(begun); err == nil {
		t.Errorf("after the failures a step is there: %v", values)
	}
	values, err := v.Fold(part("n1", "n 2"))
	want := []project.Value{
		{Key: "r1.all.n1.web", Data: []byte(`{"rollout":"r1","tier":"all","node":"n1","module":"web"}`)},
		{Key: "r1.all.n=202.web", Data: []byte(`{"rollout":"r1","tier":"all","node":"n 2","module":"web"}`)},
	}
	if diff := cmp.Diff(want, values); err != nil || diff != "" {
		t.Errorf("gave %v (-want +got):\n%s", err, diff)
	}
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, steps.New, false)
}
