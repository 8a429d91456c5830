package run

import (
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// carried are commands that lead to every type of event about merges, tracks, strategies and rollouts. They need the node n2 and what
// is published of web.
func carried(web events.Reference) []step {
	const strategy = `{"tiers":[{"name":"a","failure-budget":1,"approval":true,"retry":1},{"name":"b"}]}`
	newer := events.Reference{Package: &events.Package{Name: "@shop/web", Version: "1.21"}}
	n2, n3 := events.StepName{Node: "n2", Module: "web"}, events.StepName{Node: "n3", Module: "web"}
	plan := func(id, reverts string, steps ...events.PlannedStep) es.Payload {
		digest, err := events.PlanDigest{}.With(steps...)
		if err != nil {
			panic(err) // a step always has a stored form
		}
		return commands.PlanRollout{
			ID: id, Part: 1, Steps: steps, Count: len(steps), Digest: digest.String(),
			Head: &events.PlanHead{
				Strategy: events.Raw(strategy), StrategyName: "plain", StrategyDigest: es.Digest([]byte(strategy)), Reason: "because", Reverts: reverts,
				Commits: []events.FixedCommit{{Repository: "git.example.org/shop", Branch: "main", Commit: "c0ffee"}},
				Targets: []events.Target{{Module: "web", Version: *steps[0].After}},
			},
		}
	}
	to := func(tier string, n events.StepName, before, after events.Reference) events.PlannedStep {
		s := events.PlannedStep{Tier: tier, StepName: n, After: &events.Version{Reference: after}}
		if !before.IsZero() {
			s.Before = &events.Version{Reference: before}
		}
		return s
	}
	report := func(id string, n events.StepName, of events.Reference, outcome string) es.Payload {
		return commands.Observe{Seen: events.Seen{Node: n.Node, Module: n.Module, Reference: of, Rollout: id, Outputs: map[string]string{"port": "80"}}, Outcome: outcome}
	}
	end := func(id string, n events.StepName, attempt int, outcome string) es.Payload {
		return commands.EndStep{ID: id, StepName: n, Attempt: attempt, StepResult: events.StepResult{Outcome: outcome, Reason: "exit 1", Outputs: map[string]string{"port": "80"}, Driver: &events.Driver{Name: "files"}}}
	}
	track := events.TrackSpec{Track: "shops", Modules: []string{"web"}, Strategy: "plain", On: events.OnMerge}
	merge := commands.TakeMerge{Repository: "git.example.org/shop", Branch: "main", Commit: "c0ffee", Rollout: "r1"}
	var steps []step
	for _, p := range []es.Payload{
		commands.RegisterNode{Node: "n3"}, commands.RecordPublication{Reference: newer, Module: "web"},
		commands.DeclareStrategy{Name: "plain", Strategy: events.Raw(strategy)}, commands.DeclareStrategy{Name: "other", Strategy: events.Raw(strategy)},
		commands.EndStrategy{Name: "other", Reason: "not needed"},
		commands.DeclareTrack{TrackSpec: track}, commands.ChangeTrack{TrackSpec: events.TrackSpec{Track: "shops", Modules: []string{"web", "db"}, Strategy: "plain", On: events.OnManual}},
		commands.HoldMerge{Repository: "git.example.org/shop", Branch: "main", Commit: "c0ffee", Event: events.Raw(`{ "n": 7 }`), Alone: true, Waiting: "not planned"},

		plan("r1", "", to("a", n3, events.Reference{}, web), to("b", n2, events.Reference{}, web)), merge,
		commands.ApproveRollout{ID: "r1"}, commands.StartRollout{ID: "r1"}, commands.BlockRollout{ID: "r1", Holds: []events.Hold{{Reason: events.HoldLimit, Tier: "a", Steps: []events.StepName{n3}, Count: 1}}},
		commands.PauseRollout{ID: "r1", Reason: "wait"}, commands.ResumeRollout{ID: "r1"},
		commands.BeginStep{ID: "r1", StepName: n3}, report("r1", n3, web, commands.OutcomeApplyFailed), end("r1", n3, 1, events.StepFailed),
		commands.BeginStep{ID: "r1", StepName: n3}, report("r1", n3, web, commands.OutcomeApplyFailed), end("r1", n3, 2, events.StepFailed),
		commands.RetryStep{ID: "r1", StepName: n3, Reason: "once more"}, commands.BeginStep{ID: "r1", StepName: n3},
		report("r1", n3, web, commands.OutcomeApplied), end("r1", n3, 3, events.StepDone),
		commands.AbortRollout{ID: "r1", Reason: "enough"}, commands.ReleaseMerge{Repository: "git.example.org/shop", Branch: "main", Commit: "c0ffee", Placed: true},

		plan("r2", "", to("b", n2, events.Reference{}, web)), commands.StartRollout{ID: "r2"}, commands.BeginStep{ID: "r2", StepName: n2},
		report("r2", n2, web, commands.OutcomeApplied), end("r2", n2, 1, events.StepDone),
		plan("r3", "r2", to("b", n2, web, newer)),
		plan("r4", "", to("b", n3, web, newer)), commands.SupersedeRollout{ID: "r3", By: "r4", Reason: "newer"},
		commands.StartRollout{ID: "r4"}, commands.BeginStep{ID: "r4", StepName: n3}, report("r4", n3, newer, commands.OutcomeApplyFailed), end("r4", n3, 1, events.StepFailed),
		commands.EndTrack{Track: "shops", Reason: "by hand"},
	} {
		steps = append(steps, step{payload: p})
	}
	return steps
}
