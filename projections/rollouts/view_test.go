package rollouts_test

import (
	"testing"
	"time"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/perkey"
	"catenary/projections/rollouts"
	"catenary/projections/viewtest"
)

func rollout(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateRollout, Key: "r1"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	n1, n2 := events.StepName{Node: "n1", Module: "web"}, events.StepName{Node: "n2", Module: "web"}
	version := events.Version{Reference: events.Reference{Artifact: "sha256:1"}, Build: "b1"}
	planning := rollout(events.RolloutPlanning{ID: "r1", PlanHead: events.PlanHead{
		Strategy: events.Raw(`{"tiers":[{"name":"rest","after":["first"]},{"name":"first","selector":{"nodes":["n1"]},"concurrency":"25%","approval":true}]}`),
		Reason:   "release", StrategyName: "canary", StrategyDigest: "77",
		Commits: []events.FixedCommit{{Repository: "shop", Commit: "c1"}}, Targets: []events.Target{{Module: "web", Version: version}},
	}})
	steps := rollout(events.RolloutStepsPlanned{Part: 1, Steps: []events.PlannedStep{{Tier: "first", StepName: n1, After: &version}, {Tier: "rest", StepName: n2}}})
	planned, started := rollout(events.RolloutPlanned{Count: 2, Digest: "ab", Ends: 1}), rollout(events.RolloutStarted{})
	entered := rollout(events.RolloutTierEntered{Tier: "first"})
	begun := rollout(events.RolloutStepBegun{Tier: "first", StepName: n1, Attempt: 1})
	ended := func(outcome, from string, again bool) projecttest.Fact {
		return rollout(events.RolloutStepEnded{Tier: "first", StepName: n1, StepResult: events.StepResult{Outcome: outcome}, From: from, Again: again})
	}
	blocked := rollout(events.RolloutBlocked{Holds: []events.Hold{{Reason: events.HoldFrozen, Tier: "first", Count: 1, Until: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}}})
	record := func(state, firstCounts, restCounts, more string) string {
		return `{"id":"r1","state":"` + state + `","reason":"release",` + `"commits":[{"repository":"shop","commit":"c1"}],"tiers":[` +
			`{"name":"first","selector":{"nodes":["n1"]},"policy":{"concurrency":"25%","approval":true}` + firstCounts + `},` +
			`{"name":"rest"` + restCounts + `}],"builds":[{"module":"web","artifact":"sha256:1","build":"b1"}]` + more
	}
	const strategy = `,"strategy":"canary","strategy-digest":"77"`
	const whole = `,"changed":2,"ends":1,"digest":"ab"` + strategy
	const one, rest = `,"counts":{"steps":1}`, `,"counts":{"steps":1}`
	running := []projecttest.Fact{planning, steps, planned, started, entered}
	at := func(minute string) string { return `"2026-01-01T00:0` + minute + `:00Z"` }
	times := `,"times":{"planned":` + at("3") + `,"started":` + at("4") + `}}`
	in := func(counts string) string { return `,"counts":{` + counts + `},"entered":` + at("5") }
	viewtest.Check(t, rollouts.New, []viewtest.Row{
		{Name: "planning: tiers stand in their order", When: planning, Then: record("planning", "", "", strategy+`,"times":{"planned":`+at("1")+`}}`)},
		{Name: "steps planned", Given: []projecttest.Fact{planning}, When: steps, Then: record("planning", one, rest, `,"changed":2`+strategy+`,"times":{"planned":`+at("1")+`}}`)},
		{Name: "planned", Given: []projecttest.Fact{planning, steps}, When: planned, Then: record("planned", one, rest, whole+`,"times":{"planned":`+at("3")+`}}`)},
		{
			Name: "planned, to be approved", Given: []projecttest.Fact{planning, steps}, When: rollout(events.RolloutPlanned{Count: 2, Digest: "ab", Ends: 1, Approval: true}),
			Then: record("waiting-approval", one, rest, whole+`,"times":{"planned":`+at("3")+`}}`),
		},
		{
			Name: "approved", Given: []projecttest.Fact{planning, steps, rollout(events.RolloutPlanned{Count: 2, Digest: "ab", Ends: 1, Approval: true})},
			When: rollout(events.RolloutApproved{Tier: "first"}),
			Then: record("planned", one+`,"approved":true`, rest, whole+`,"times":{"planned":`+at("3")+`}}`),
		},
		{Name: "started", Given: running[:3], When: started, Then: record("running", one, rest, whole+times)},
		{Name: "entered", Given: running[:4], When: entered, Then: record("running", in(`"steps":1`), rest, whole+times)},
		{Name: "a step begun", Given: running, When: begun, Then: record("running", in(`"steps":1,"pending":1`), rest, whole+times)},
		{Name: "a step done", Given: append(running, begun), When: ended("done", "", false), Then: record("running", in(`"steps":1,"done":1`), rest, whole+times)},
		{Name: "a step done already", Given: running, When: ended("done", "waiting", false), Then: record("running", in(`"steps":1,"done":1`), rest, whole+times)},
		{Name: "a step failed, to be tried again", Given: append(running, begun), When: ended("failed", "", true), Then: record("running", in(`"steps":1`), rest, whole+times)},
		{
			Name: "an unknown step settled", Given: append(running, begun, ended("unknown", "", false)), When: ended("failed", "unknown", false),
			Then: record("running", in(`"steps":1,"failed":1`), rest, whole+times),
		},
		{
			Name: "a step retried", Given: append(running, begun, ended("failed", "", false)), When: rollout(events.RolloutStepRetried{Tier: "first", StepName: n1, From: "failed"}),
			Then: record("running", in(`"steps":1`), rest, whole+times),
		},
		{
			Name: "blocked", Given: running, When: blocked,
			Then: record("running", in(`"steps":1`), rest, whole+`,"blocked":[{"reason":"frozen","tier":"first","count":1,"until":"2026-05-01T00:00:00Z"}]`+times),
		},
		{Name: "no more blocked", Given: append(running, blocked), When: begun, Then: record("running", in(`"steps":1,"pending":1`), rest, whole+times)},
		{
			Name: "paused", Given: running, When: rollout(events.RolloutPaused{}),
			Then: record("paused", in(`"steps":1`), rest, whole+`,"times":{"planned":`+at("3")+`,"started":`+at("4")+`,"paused":`+at("6")+`}}`),
		},
		{Name: "resumed", Given: append(running, rollout(events.RolloutPaused{})), When: rollout(events.RolloutResumed{}), Then: record("running", in(`"steps":1`), rest, whole+times)},
		{
			Name: "failed", Given: running, When: rollout(events.RolloutFailed{Tier: "first", Reason: "1 of 1"}),
			Then: finalRecord(record, in(`"steps":1`), rest, "failed", `"1 of 1"`, whole, "", at),
		},
		{
			Name: "superseded", Given: running, When: rollout(events.RolloutSuperseded{By: "r2", Reason: "newer"}),
			Then: finalRecord(record, in(`"steps":1`), rest, "superseded", `"newer"`, `,"changed":2,"ends":1,"digest":"ab","superseded-by":"r2"`+strategy, "", at),
		},
		{Name: "begun without a plan", When: started, Fails: perkey.ErrUntold.Error()},
	})
}

// finalRecord gives the record of a rollout that came to an end at the sixth event.
func finalRecord(record func(state, first, rest, more string) string, first, rest, state, why, whole, more string, at func(string) string) string {
	r := record(state, first, rest, whole+more+`,"times":{"planned":`+at("3")+`,"started":`+at("4")+`,"ended":`+at("6")+`}}`)
	const reason = `"reason":"release",`
	return r[:len(`{"id":"r1","state":"`+state+`",`)] + reason + `"why":` + why + `,` + r[len(`{"id":"r1","state":"`+state+`",`)+len(reason):]
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, rollouts.New, false)
}
