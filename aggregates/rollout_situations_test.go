package aggregates_test

import (
	"catenary/commands"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
)

// situations makes what the table speaks of, by command and situation.
func situations() map[string]setting {
	all := map[string]setting{}
	for command, list := range map[string]map[string]setting{
		"plan": planSettings(), "begin-step": beginSettings(), "end-step": endSettings(), "settle": settleSettings(), "advance": advanceSettings(),
		"retry-step": {
			"it has begun":               {bare: true, facts: func(x *scene) { x.begun("n1", 1) }},
			"it is done":                 {bare: true, facts: func(x *scene) { x.begun("n1", 1).ended("n1", events.StepDone, false) }},
			"it waits, and never failed": {bare: true},
		},
		"block": {
			"it was said before": {facts: func(x *scene) {
				x.and(on(commands.RolloutRef("r1"), events.RolloutBlocked{Holds: []events.Hold{{Reason: events.HoldOffline}}}))
			}},
			"the sender has lost the engine's lease": lost(),
		},
		"approve": {
			"no tier waits for approval": {},
			"there is no such tier":      {command: func(x *scene) { x.payload = commands.ApproveRollout{ID: "r1", Tier: "third"} }},
			"the tier to be entered is approved already, and one behind it is not": {
				plan:  func(s *shape) { s.strategy.Tiers[0].Approval, s.strategy.Tiers[1].Approval = true, true },
				facts: func(x *scene) { x.and(on(commands.RolloutRef("r1"), events.RolloutApproved{Tier: "first"})) },
			},
		},
		"supersede": {
			"by a rollout that is not known": {command: func(x *scene) { x.payload = commands.SupersedeRollout{ID: "r1", By: "r9"} }},
			"by a rollout that is final": {facts: func(x *scene) {
				x.and(on(commands.RolloutRef("r0"), events.RolloutAborted{}))
			}},
		},
	} {
		for situation, set := range list {
			all[command+": "+situation] = set
		}
	}
	return all
}

// lost lets another process hold the engine's lease.
func lost() setting {
	return setting{facts: engine("e2"), command: func(x *scene) { x.options = append(x.options, under(x, -1)) }}
}

func engine(holder string) func(*scene) {
	return func(x *scene) {
		x.and(on(commands.LeaseRef(commands.EngineLease), events.LeaseTaken{Name: commands.EngineLease, Holder: holder, TTL: "10s"}))
	}
}

// under sends a command under the fence of the engine's lease, or one beside it.
func under(x *scene, beside int64) estest.Option {
	fence, _ := x.world.EngineFence()
	return func(c *es.Command) { c.Fence = uint64(int64(fence) + beside) }
}

func planSettings() map[string]setting {
	change := func(how func(p *commands.PlanRollout)) setting {
		return setting{command: func(x *scene) {
			p := x.payload.(commands.PlanRollout)
			how(&p)
			x.payload = p
		}}
	}
	// Case E21: what a plan ends is confirmed with its exact count.
	ends := func(confirm *int) setting {
		return setting{plan: func(s *shape) { s.steps[1].After, s.confirm = nil, confirm }}
	}
	one, two := 1, 2
	older := func(final bool, begun bool) func(*scene) {
		return func(x *scene) {
			ref := commands.RolloutRef("r0")
			if begun {
				x.and(on(commands.PublicationRef(pkg("web", "3")), events.PublicationRecorded{Reference: pkg("web", "3"), Module: "web"}))
				old := shape{
					strategy: events.Strategy{Tiers: []events.Tier{{Name: "all"}}}, head: events.PlanHead{Targets: []events.Target{{Module: "web", Version: *version("3")}}},
					steps: []events.PlannedStep{{Tier: "all", StepName: stepOf("n1"), Before: version("2"), After: version("3")}},
				}
				x.and(happened(old.whole(x.t, "r8"), false)...)
				ref = commands.RolloutRef("r8")
				x.and(on(ref, events.RolloutStarted{}), on(ref, events.RolloutTierEntered{Tier: "all"}),
					on(ref, events.RolloutStepBegun{Tier: "all", StepName: stepOf("n1"), Attempt: 1}))
			}
			if final {
				x.and(on(ref, events.RolloutFinished{}))
			}
		}
	}
	reverts := func(id string, facts func(*scene)) setting {
		return setting{plan: func(s *shape) { s.head.Reverts = id }, facts: facts}
	}
	return map[string]setting{
		"its digest is that of other steps":                   change(func(p *commands.PlanRollout) { p.Digest = commands.PlanRollout{}.Digest + es.Digest([]byte("x")) }),
		"its count is another one":                            change(func(p *commands.PlanRollout) { p.Count++ }),
		"it has no steps":                                     change(func(p *commands.PlanRollout) { p.Steps, p.Count = nil, 0 }),
		"it ends what stands, unconfirmed":                    ends(nil),
		"it ends what stands, and another count is confirmed": ends(&two),
		"it ends what stands, and the count is confirmed":     ends(&one),
		"a step is in a tier that the strategy has not":       {plan: func(s *shape) { s.steps[1].Tier = "third" }},
		"a module is changed twice on a node":                 {plan: func(s *shape) { s.steps[1].StepName = s.steps[0].StepName }},
		"a step waits for one behind it": {plan: func(s *shape) {
			s.steps[1].Tier, s.steps[0].WaitsFor = "first", []events.WaitFor{{StepName: stepOf("n2")}}
		}},
		"its track does not carry the module": {plan: func(s *shape) { s.head.Track = "apis" }, facts: func(x *scene) {
			x.and(on(commands.TrackRef("apis"), events.TrackDeclared{TrackSpec: events.TrackSpec{Track: "apis", Modules: []string{"api"}, Strategy: "s", On: events.OnMerge}}))
		}},
		"it takes a running rollout back":  reverts("r8", older(false, true)),
		"it takes a finished rollout back": reverts("r8", older(true, true)),
		"it takes a queued rollout back":   reverts("r0", nil),
		"it takes back what is taken back": reverts("r8", func(x *scene) {
			older(true, true)(x)
			x.and(on(commands.RolloutRef("r8"), events.RolloutReverted{By: "r7"}))
		}),
		"it replaces a queued rollout":               {plan: func(s *shape) { s.head.Supersedes = []string{"r0"} }},
		"it replaces a rollout that is final by now": {plan: func(s *shape) { s.head.Supersedes = []string{"r0"} }, facts: older(true, false)},
		"the part came before": change(func(p *commands.PlanRollout) {
			p.Part = 1
			p.Head = &events.PlanHead{Strategy: events.Raw(`{"tiers":[{"name":"a"}]}`), StrategyDigest: es.Digest([]byte(`{"tiers":[{"name":"a"}]}`))}
		}),
		"a part between is missing": change(func(p *commands.PlanRollout) { p.Part = 3 }),
	}
}

func beginSettings() map[string]setting {
	target := func(n events.StepName) setting {
		return setting{command: func(x *scene) { x.payload = commands.BeginStep{ID: "r1", StepName: n} }}
	}
	waits := func(s *shape) {
		s.steps[1].Tier, s.steps[1].WaitsFor = "first", []events.WaitFor{{StepName: stepOf("n1"), Notify: true}}
	}
	refresh := func(s *shape) {
		waits(s)
		s.steps[1].After, s.steps[1].Refresh = s.steps[1].Before, true
	}
	second := target(stepOf("n2"))
	changed := func(x *scene) {
		x.begun("n1", 1).and(on(commands.RolloutRef("r1"), events.RolloutStepEnded{
			Tier: "first", StepName: stepOf("n1"), Attempt: 1, StepResult: events.StepResult{Outcome: events.StepDone}, By: events.SettledByReport,
			Notified: []events.StepName{stepOf("n2")},
		}))
	}
	failed := func(x *scene) { x.begun("n1", 1).ended("n1", events.StepFailed, true) }
	tries := func(s *shape) { s.strategy.Tiers[0].Retry, s.strategy.Tiers[0].Delay = 2, "5m" }
	return map[string]setting{
		"its tier is not entered":                second,
		"there is no such step":                  target(stepOf("n3")),
		"it has begun":                           {facts: func(x *scene) { x.begun("n1", 1) }},
		"it is done":                             {facts: func(x *scene) { x.begun("n1", 1).ended("n1", events.StepDone, false) }},
		"the node has left the before-reference": {facts: func(x *scene) { x.and(assigned("n1", "web", "7")) }},
		"the node is right already":              {facts: func(x *scene) { x.and(assigned("n1", "web", "2")) }},
		"what it waits for is not done":          {plan: waits, command: second.command},
		"a freeze holds":                         {facts: func(x *scene) { x.and(on(commands.FreezeRef("f"), events.FreezeDeclared{Name: "f"})) }},
		"a freeze holds by the labels of the node": {facts: func(x *scene) {
			x.and(on(commands.NodeRef("n1"), events.NodeRelabelled{Labels: map[string]string{"zone": "a"}}),
				on(commands.FreezeRef("f"), events.FreezeDeclared{Name: "f", Selector: events.Selector{Labels: map[string]string{"zone": "a"}}}))
		}},
		"the publication is vetoed": {facts: func(x *scene) { x.and(vetoed(pkg("web", "2"), "bad")) }},
		"the node is retired":       {facts: func(x *scene) { x.and(on(commands.NodeRef("n1"), events.NodeRetired{})) }},
		"somebody else manages the node": {facts: func(x *scene) {
			x.and(on(commands.NodeRef("n1"), events.NodeRegistered{Node: "n1", ManagedBy: events.ManagedByExternal}))
		}},
		"as many are under way as may be": {
			plan: func(s *shape) { s.steps[1].Tier, s.strategy.Tiers[0].Concurrency = "first", events.PercentOf(50) },
			facts: func(x *scene) {
				x.and(on(commands.RolloutRef("r1"), events.RolloutStepBegun{Tier: "first", StepName: stepOf("n2"), Attempt: 1}))
			},
		},
		"it failed just now":    {plan: tries, facts: failed},
		"it failed a while ago": {plan: tries, facts: func(x *scene) { failed(x); x.at(day.Add(minutes(5))) }},
		"it ends what stands":   {plan: func(s *shape) { s.steps[0].After = nil }},
		"it ends what stands, and failed to a while ago": {plan: func(s *shape) { tries(s); s.steps[0].After = nil }, facts: func(x *scene) {
			gone := events.Seen{Node: "n1", Module: "web", Rollout: "r1"}
			x.and(on(commands.RolloutRef("r1"), events.RolloutStepBegun{Tier: "first", StepName: stepOf("n1"), Attempt: 1}),
				on(commands.AssignmentRef("n1", "web"), events.AssignmentEnded{Node: "n1", Module: "web", Rollout: "r1"}),
				on(commands.AssignmentRef("n1", "web"), events.AssignmentRemoveFailed{Seen: gone}))
			x.ended("n1", events.StepFailed, true).at(day.Add(minutes(5)))
		}},
		"it is a refresh, and nothing has changed": {plan: refresh, command: second.command, facts: func(x *scene) {
			x.begun("n1", 1).ended("n1", events.StepDone, false)
		}},
		"it is a refresh, and something has changed": {plan: refresh, command: second.command, facts: changed},
		"it is a refresh, and failed to a while ago": {plan: func(s *shape) { tries(s); refresh(s) }, command: second.command, facts: func(x *scene) {
			changed(x)
			x.and(on(commands.RolloutRef("r1"), events.RolloutStepBegun{Tier: "first", StepName: stepOf("n2"), Attempt: 1, Refresh: 1}))
			x.ended("n2", events.StepFailed, true).at(day.Add(minutes(5)))
		}},
		"the sender has lost the engine's lease": lost(),
		"the sender has the engine's lease":      {facts: engine("e1"), command: func(x *scene) { x.options = append(x.options, under(x, 0)) }},
	}
}

func endSettings() map[string]setting {
	as := func(outcome string, set setting) setting {
		set.command = func(x *scene) {
			p := x.payload.(commands.EndStep)
			p.Outcome = outcome
			x.payload = p
		}
		return set
	}
	begun := func(x *scene) { x.begun("n1", 1) }
	fails := func(x *scene) { x.begun("n1", 1).reported(commands.OutcomeApplyFailed) }
	says := func(change func(*events.Seen)) func(*scene) {
		return func(x *scene) {
			s := seen()
			change(&s)
			x.begun("n1", 1).says(s, commands.OutcomeApplied)
		}
	}
	policy := func(offline string) setting {
		return setting{bare: true, plan: func(s *shape) { s.strategy.Tiers[0].Offline = offline }}
	}
	return map[string]setting{
		"there is no such step": {command: func(x *scene) {
			x.payload = commands.EndStep{ID: "r1", StepName: stepOf("n3"), StepResult: events.StepResult{Outcome: events.StepDone}}
		}},
		"it is about another attempt": {command: func(x *scene) {
			x.payload = commands.EndStep{ID: "r1", StepName: stepOf("n1"), Attempt: 2, StepResult: events.StepResult{Outcome: events.StepDone}}
		}},
		"the node has not reported":             {bare: true, facts: begun},
		"the report names another rollout":      {bare: true, facts: says(func(s *events.Seen) { s.Rollout = "r0" })},
		"the report names another build":        {bare: true, facts: says(func(s *events.Seen) { s.Reference = pkg("web", "1") })},
		"the report is about an earlier try":    {bare: true, facts: says(func(s *events.Seen) { s.Source = 1 })},
		"done, and the node reported a failure": {bare: true, facts: fails},
		"failed, and it is tried again":         as(events.StepFailed, setting{bare: true, facts: fails, plan: func(s *shape) { s.strategy.Tiers[0].Retry = 1 }}),
		"failed, within the budget": as(events.StepFailed, setting{bare: true, facts: fails, plan: func(s *shape) {
			s.strategy.Tiers[0].FailureBudget = events.PercentOf(100)
		}}),
		"failed, over the budget":      as(events.StepFailed, setting{bare: true, facts: fails}),
		"unknown, before its deadline": as(events.StepUnknown, setting{bare: true, facts: func(x *scene) { begun(x); x.at(day.Add(minutes(9))) }}),
		"unknown, after its deadline":  as(events.StepUnknown, setting{bare: true, facts: func(x *scene) { begun(x); x.at(day.Add(minutes(10))) }}),
		// Case E05: the time a rollout is paused does not count.
		"unknown, and it was paused meanwhile": as(events.StepUnknown, setting{bare: true, facts: func(x *scene) {
			ref := commands.RolloutRef("r1")
			begun(x)
			x.at(day.Add(minutes(1)))
			x.and(on(ref, events.RolloutPaused{}))
			x.at(day.Add(minutes(9)))
			x.and(on(ref, events.RolloutResumed{}))
			x.at(day.Add(minutes(17)))
		}}),
		"a report after it was unknown": {bare: true, facts: func(x *scene) {
			x.begun("n1", 1).ended("n1", events.StepUnknown, false).reported(commands.OutcomeApplied)
		}},
		"skipped, and it has begun":                                  as(events.StepSkipped, setting{}),
		"the last of its tier":                                       {},
		"the last of all":                                            {plan: func(s *shape) { s.steps = s.steps[:1] }},
		"the last of its tier, and that bakes":                       {plan: func(s *shape) { s.strategy.Tiers[0].Bake = "1m" }},
		"the last of its tier, applied, and the gate is health":      {plan: func(s *shape) { s.strategy.Tiers[0].Gate = events.GateHealthy }},
		"the last of its tier, and the next waits for approval":      {plan: func(s *shape) { s.strategy.Tiers[1].Approval = true }},
		"skipped before it began, its node away: the policy is skip": as(events.StepSkipped, policy(events.OfflineSkip)),
		"skipped before it began, its node away: the policy is wait": as(events.StepSkipped, policy(events.OfflineWait)),
		"failed before it began, its node away: the policy is fail":  as(events.StepFailed, policy(events.OfflineFail)),
		"skipped before it began: what it waits for failed": {
			bare: true,
			plan: func(s *shape) {
				s.steps = []events.PlannedStep{s.steps[0], s.steps[1], {Tier: "second", StepName: stepOf("n3"), After: version("2")}}
				s.steps[1].Tier, s.steps[1].WaitsFor = "first", []events.WaitFor{{StepName: stepOf("n1")}}
				s.strategy.Tiers[0].FailureBudget = events.ShareOf(1)
			},
			facts: func(x *scene) { x.begun("n1", 1).ended("n1", events.StepFailed, false) },
			command: func(x *scene) {
				x.payload = commands.EndStep{ID: "r1", StepName: stepOf("n2"), StepResult: events.StepResult{Outcome: events.StepSkipped}}
			},
		},
		"done before it began":                   {bare: true},
		"the sender has lost the engine's lease": lost(),
		"it had not begun":                       {bare: true},
	}
}

func settleSettings() map[string]setting {
	as := func(outcome string, set setting) setting {
		set.command = func(x *scene) {
			x.payload = commands.SettleStep{ID: "r1", StepName: stepOf("n1"), Outcome: outcome, Reason: "looked at it"}
		}
		return set
	}
	return map[string]setting{
		"its outcome is unknown": {bare: true, plan: func(s *shape) { s.strategy.Tiers[1].Approval = true }, facts: func(x *scene) {
			x.begun("n1", 1).ended("n1", events.StepUnknown, false)
		}},
		"it is done":                    {bare: true, facts: func(x *scene) { x.begun("n1", 1).ended("n1", events.StepDone, false) }},
		"skipped, and it has not begun": as(events.StepSkipped, setting{bare: true}),
		"done, and it has not begun":    {bare: true},
		"failed, over the budget":       as(events.StepFailed, setting{}),
	}
}

func advanceSettings() map[string]setting {
	policy := func(offline string) setting {
		return setting{
			bare: true, plan: func(s *shape) { s.strategy.Tiers[0].Offline = offline },
			command: func(x *scene) {
				x.payload = commands.AdvanceRollout{ID: "r1", Offline: []events.StepName{stepOf("n1")}}
			},
		}
	}
	bakes := func(s *shape) { s.strategy.Tiers[0].Bake = "10m" }
	later := func(n int) func(*scene) { return func(x *scene) { x.at(day.Add(minutes(n))) } }
	health := func(facts func(*scene)) setting {
		return setting{bare: true, plan: func(s *shape) { s.strategy.Tiers[0].Gate = events.GateHealthy }, facts: func(x *scene) {
			x.begun("n1", 1)
			facts(x)
			x.ended("n1", events.StepDone, false)
		}}
	}
	return map[string]setting{
		"a step has no outcome":              {bare: true},
		"a node is away: the policy is wait": policy(events.OfflineWait),
		"a node is away: the policy is skip": policy(events.OfflineSkip),
		"the tier bakes":                     {plan: bakes, facts: later(9)},
		"the tier has baked":                 {plan: bakes, facts: later(10)},
		"the tier bakes, and the rollout was paused meanwhile": {plan: bakes, facts: func(x *scene) {
			ref := commands.RolloutRef("r1")
			x.at(day.Add(minutes(1)))
			x.and(on(ref, events.RolloutPaused{}))
			x.at(day.Add(minutes(8)))
			x.and(on(ref, events.RolloutResumed{}))
			x.at(day.Add(minutes(16)))
		}},
		"the gate is health, and a node has not reported it": health(func(x *scene) { x.reported(commands.OutcomeApplied) }),
		"the gate is health, and another rollout's health is reported": health(func(x *scene) {
			s := seen()
			s.Rollout = "r0"
			x.reported(commands.OutcomeApplied).says(s, commands.OutcomeHealthy)
		}),
		"the gate is health, and all is well": health(func(x *scene) { x.reported(commands.OutcomeHealthy) }),
		"a node is not well":                  health(func(x *scene) { x.reported(commands.OutcomeUnhealthy) }),
		"the next tier waits for approval":    {plan: func(s *shape) { s.strategy.Tiers[1].Approval = true }, bare: true, facts: func(x *scene) { x.begun("n1", 1).ended("n1", events.StepDone, false) }},
		"it was the last tier":                {plan: func(s *shape) { s.steps = s.steps[:1] }},
		"it was the last tier, and a node is away still": {
			bare: true, plan: func(s *shape) { s.steps = s.steps[:1] },
			command: func(x *scene) {
				x.payload = commands.AdvanceRollout{ID: "r1", Offline: []events.StepName{stepOf("n1")}}
			},
		},
		"the sender has lost the engine's lease": lost(),
	}
}
