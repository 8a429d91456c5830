package aggregates_test

import (
	"fmt"
	"testing"
	"time"

	"catenary/aggregates/assignment"
	"catenary/aggregates/rollout"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// fleet is the fixture of the cases: module shop at r1 on six nodes in three tiers.
func fleet(t *testing.T) *story {
	t.Helper()
	facts := also(nodes("n1", "n2", "n3", "n4", "n5", "n6"), modules("shop"))
	for _, v := range []string{"r1", "r2", "r3", "r4"} {
		facts = append(facts, published(pkg("shop", v), "", "", "shop"))
	}
	for _, n := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
		facts = append(facts, assigned(n, "shop", "r1"))
	}
	return given(t, facts...)
}

// carry plans a rollout of shop from one version to another over the given nodes, each a tier of its own.
func carry(t *testing.T, id, from, to string, over ...string) commands.PlanRollout {
	t.Helper()
	s := shape{head: events.PlanHead{Targets: []events.Target{{Module: "shop", Version: events.Version{Reference: pkg("shop", to)}}}}}
	for _, n := range over {
		s.strategy.Tiers = append(s.strategy.Tiers, events.Tier{Name: "tier of " + n})
		s.steps = append(s.steps, events.PlannedStep{
			Tier: "tier of " + n, StepName: events.StepName{Node: n, Module: "shop"},
			Before: &events.Version{Reference: pkg("shop", from)}, After: &events.Version{Reference: pkg("shop", to)},
		})
	}
	return s.whole(t, id)
}

func begin(id, node string) commands.BeginStep {
	return commands.BeginStep{ID: id, StepName: events.StepName{Node: node, Module: "shop"}}
}

func end(id, node, outcome string) commands.EndStep {
	return commands.EndStep{ID: id, StepName: events.StepName{Node: node, Module: "shop"}, Attempt: 1, StepResult: events.StepResult{Outcome: outcome}}
}

func report(id, node, at, outcome string) commands.Observe {
	return commands.Observe{Seen: events.Seen{Node: node, Module: "shop", Reference: pkg("shop", at), Rollout: id}, Outcome: outcome}
}

// walked lets a rollout go over a node to a good end.
func (s *story) walked(id, node, at string) *story {
	s.t.Helper()
	return s.when(begin(id, node)).accepted().when(report(id, node, at, "applied")).accepted().when(end(id, node, events.StepDone)).accepted()
}

func (s *story) stands(id string, want rollout.Status) *story {
	s.t.Helper()
	if got := s.world.Rollout(id).Status; got != want {
		s.t.Fatalf("rollout %s is %s, want %s", id, got, want)
	}
	return s
}

// restarted goes on in a world that was read back from a snapshot.
func (s *story) restarted() *story {
	s.t.Helper()
	s.world = restored(s.t, snapshotOf(s.t, s.world))
	return s
}

func TestRolloutWalksToItsEnd(t *testing.T) {
	t.Parallel()
	plan := carry(t, "two", "r1", "r2", "n1", "n2")
	s := fleet(t).when(plan).accepted().when(commands.StartRollout{ID: "two"}).accepted().
		walked("two", "n1", "r2").walked("two", "n2", "r2").stands("two", rollout.Finished)
	a := s.world.Assignment("n1", "shop")
	if a.Run().Rollout != "two" || a.Run().Version != "r2" || a.Reported("two") != assignment.Applied {
		t.Errorf("n1 is at %+v, which it reports as %d", a.Run(), a.Reported("two"))
	}
	// Of a rollout that is final only what others need is kept.
	if _, kept := s.world.Steps("two").Step(events.StepName{Node: "n1", Module: "shop"}); kept || len(s.world.Rollout("two").Tiers) > 0 {
		t.Error("a final rollout is kept whole")
	}
	// Case B16: a begin that was held back comes after the end.
	s.when(begin("two", "n2")).rejected(rollout.CodeFinal, "finished")
}

// TestAbortIsForEver covers the cases E01 and E03.
func TestAbortIsForEver(t *testing.T) {
	t.Parallel()
	s := fleet(t).
		when(commands.AbortRollout{ID: "two"}).rejected(rollout.CodeUnknown).
		when(carry(t, "two", "r1", "r2", "n1", "n2")).accepted().when(commands.StartRollout{ID: "two"}).accepted().
		when(begin("two", "n1")).accepted().
		when(commands.AbortRollout{ID: "two", Reason: "wrong one"}).accepted().
		when(commands.AbortRollout{ID: "two"}).rejected(rollout.CodeFinal).
		when(commands.StartRollout{ID: "two"}).rejected(rollout.CodeFinal).
		when(commands.ResumeRollout{ID: "two"}).rejected(rollout.CodeFinal).
		when(begin("two", "n2")).rejected(rollout.CodeFinal)
	// What was under way is pending until somebody knows, and ends nothing else.
	if step, ok := s.world.Steps("two").Step(events.StepName{Node: "n1", Module: "shop"}); !ok || step.Phase != rollout.Pending {
		t.Fatalf("the step that had begun is %+v", step)
	}
	s.when(report("two", "n1", "r2", "applied")).accepted().when(end("two", "n1", events.StepDone)).accepted().stands("two", rollout.Aborted)
	if _, ok := s.world.Steps("two").Step(events.StepName{Node: "n1", Module: "shop"}); ok {
		t.Error("a settled step of a final rollout is kept")
	}
	again := s.restarted()
	if got := again.world.Rollout("two").Status; got != rollout.Aborted {
		t.Errorf("after a restart it is %s", got)
	}
}

// TestRollbackIsARolloutOfItsOwn covers the cases E07 and E19: what comes back is what stood before, and what was taken back stays
// away until its veto is lifted.
func TestRollbackIsARolloutOfItsOwn(t *testing.T) {
	t.Parallel()
	s := fleet(t).
		when(carry(t, "two", "r1", "r2", "n1")).accepted().when(commands.StartRollout{ID: "two"}).accepted().walked("two", "n1", "r2").
		when(carry(t, "three", "r2", "r3", "n1")).accepted().when(commands.AbortRollout{ID: "three"}).accepted().
		when(carry(t, "four", "r2", "r4", "n1", "n2")).accepted().when(commands.StartRollout{ID: "four"}).accepted().walked("four", "n1", "r4")
	back := carry(t, "back", "r4", "r2", "n1")
	back.Head.Reverts, back.Head.Reason = "four", "logins break"
	ref, four := commands.RolloutRef("back"), commands.RolloutRef("four")
	head := events.RolloutPlanning{ID: "back", PlanHead: *back.Head}
	s.when(back).then(
		on(ref, head), on(ref, events.RolloutStepsPlanned{Part: 1, Steps: back.Steps}),
		on(ref, events.RolloutPlanned{Count: 1, Digest: back.Digest}),
		on(four, events.RolloutAborted{Reason: "taken back by rollout back"}), on(four, events.RolloutReverted{By: "back"}),
		on(commands.PublicationRef(pkg("shop", "r4")), events.PublicationVetoed{Reason: "rollout four was taken back by rollout back: logins break"}),
	).
		when(commands.StartRollout{ID: "back"}).accepted().walked("back", "n1", "r2").stands("back", rollout.Finished).stands("four", rollout.Aborted)
	if got := s.world.Rollout("four").RevertedBy; got != "back" {
		t.Errorf("four was taken back by %q", got)
	}
	again := carry(t, "again", "r2", "r4", "n1")
	s.when(again).accepted().when(commands.StartRollout{ID: "again"}).accepted().
		when(begin("again", "n1")).rejected("vetoed", "r4", "logins break").
		when(commands.LiftVeto{Reference: pkg("shop", "r4")}).accepted().
		when(begin("again", "n1")).accepted()
}

func TestRetriesEndWithTheBudget(t *testing.T) {
	t.Parallel()
	plan := carry(t, "three", "r1", "r3", "n1", "n2")
	plan = withStrategy(t, plan, func(s *events.Strategy) { s.Tiers[0].Retry = 1 })
	second := end("three", "n1", events.StepFailed)
	second.Attempt = 2
	fleet(t).when(plan).accepted().when(commands.StartRollout{ID: "three"}).accepted().
		when(begin("three", "n1")).accepted().when(report("three", "n1", "r3", "apply-failed")).accepted().
		when(end("three", "n1", events.StepFailed)).accepted().stands("three", rollout.Running).
		when(begin("three", "n1")).accepted().
		when(second).rejected(rollout.CodeNotReported). // what was said of the first try says nothing of this one
		when(report("three", "n1", "r3", "apply-failed")).accepted().
		when(second).accepted().stands("three", rollout.Failed)
}

// withStrategy gives the plan with a changed strategy.
func withStrategy(t *testing.T, p commands.PlanRollout, change func(*events.Strategy)) commands.PlanRollout {
	t.Helper()
	s, err := events.ParseStrategy(p.Head.Strategy)
	if err != nil {
		t.Fatal(err)
	}
	change(&s)
	return shape{strategy: s, steps: p.Steps, head: *p.Head}.whole(t, p.ID)
}

func TestFrozenSaysUntilWhen(t *testing.T) {
	t.Parallel()
	window := &events.Window{Recurring: &events.Recurring{Days: []string{"fri"}, From: "12:00", To: "18:00", Zone: "Europe/Berlin"}}
	s := fleet(t).when(carry(t, "two", "r1", "r2", "n1")).accepted().when(commands.StartRollout{ID: "two"}).accepted().
		when(commands.DeclareFreeze{Name: "friday", Window: window}).accepted(). // the day of the stories is one
		when(begin("two", "n1")).rejected(rollout.CodeFrozen, "friday", "until 2026-05-01T16:00:00Z").
		when(commands.DeclareFreeze{Name: "for ever"}).accepted().
		when(begin("two", "n1")).rejected(rollout.CodeFrozen, "for ever, friday").
		when(commands.LiftFreeze{Name: "for ever"}).accepted()
	s.at(day.Add(4 * time.Hour)).when(begin("two", "n1")).accepted()
}

// TestLargePlans covers case D13 where a plan is decided: over 10,000 nodes no record is over the limit, and none leaves before all parts are
// there.
func TestLargePlans(t *testing.T) {
	t.Parallel()
	const count = 10_000
	var facts []es.KeyedEvent
	strategy := events.Strategy{Tiers: []events.Tier{{Name: "all"}}}
	raw, sum, err := strategy.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	var digest events.PlanDigest
	var parts []commands.PlanRollout
	for n := 0; n < count; n += commands.MaxPartSteps {
		p := commands.PlanRollout{ID: "large", Part: len(parts) + 1}
		for i := range commands.MaxPartSteps {
			p.Steps = append(p.Steps, events.PlannedStep{
				Tier: "all", StepName: events.StepName{Node: fmt.Sprintf("node-%05d", n+i), Module: "shop"}, After: &events.Version{Reference: pkg("shop", "r2")},
			})
		}
		if digest, err = digest.With(p.Steps...); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	parts[0].Head = &events.PlanHead{Strategy: raw, StrategyDigest: sum}
	last := &parts[len(parts)-1]
	last.Count, last.Digest = count, digest.String()
	l := newLedger(t)
	l.apply(day, append(facts, modules("shop")...)...)
	for i, p := range parts {
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := l.status(commands.StartRollout{ID: "large"}, day); got != es.StatusRejected {
			t.Fatalf("after %d of %d parts it starts: %s", i, len(parts), got)
		}
		if got := l.status(p, day); got != es.StatusAccepted {
			t.Fatalf("part %d: %s", p.Part, got)
		}
	}
	if got := l.status(commands.StartRollout{ID: "large"}, day); got != es.StatusAccepted {
		t.Errorf("whole it does not start: %s", got)
	}
	if s := l.world.Rollout("large"); s.Count != count || s.Tiers[0].Steps != count {
		t.Errorf("it has %d steps, and %d in its tier", s.Count, s.Tiers[0].Steps)
	}
	if got := l.status(commands.AbortRollout{ID: "large"}, day); got != es.StatusAccepted {
		t.Errorf("aborted: %s", got)
	}
	left := 0
	l.world.Steps("large").All(func(events.StepName, rollout.Step) { left++ })
	if left > 0 {
		t.Errorf("%d steps are kept of an aborted rollout", left)
	}
}

func TestTracks(t *testing.T) {
	t.Parallel()
	raw := events.Raw(`{ "tiers" : [ {"name":"all"} ] }`)
	canonical := events.Raw(`{"tiers":[{"name":"all"}]}`)
	declare := commands.DeclareStrategy{Name: "plain", Strategy: raw}
	spec := events.TrackSpec{Track: "shops", Modules: []string{"shop"}, Strategy: "plain", On: events.OnMerge}
	other := spec
	other.Track = "others"
	changed := spec
	changed.On = events.OnManual
	ref, track := commands.StrategyRef("plain"), commands.TrackRef("shops")
	fleet(t).
		when(commands.DeclareTrack{TrackSpec: spec}).rejected("unknown-strategy", "plain").
		when(commands.EndStrategy{Name: "plain"}).rejected("unknown-strategy").
		when(declare).then(on(ref, events.StrategyDeclared{Name: "plain", Strategy: canonical, Digest: es.Digest(canonical)})).
		again().unchanged().
		when(commands.ChangeTrack{TrackSpec: spec}).rejected("unknown-track").
		when(commands.DeclareTrack{TrackSpec: events.TrackSpec{Track: "x", Modules: []string{"nope"}, Strategy: "plain", On: events.OnMerge}}).rejected("unknown-module").
		when(commands.DeclareTrack{TrackSpec: spec}).then(on(track, events.TrackDeclared{TrackSpec: spec})).
		again().unchanged().
		when(commands.DeclareTrack{TrackSpec: changed}).rejected("declared", "track change").
		when(commands.DeclareTrack{TrackSpec: other}).rejected("module-tracked", "shops").
		when(commands.EndStrategy{Name: "plain"}).rejected("strategy-used", "shops").
		when(commands.ChangeTrack{TrackSpec: changed}).then(on(track, events.TrackChanged{TrackSpec: changed})).
		again().unchanged().
		when(commands.EndTrack{Track: "shops"}).then(on(track, events.TrackEnded{})).
		again().unchanged().
		when(commands.DeclareTrack{TrackSpec: other}).accepted().
		when(commands.EndTrack{Track: "others"}).accepted().
		when(commands.EndStrategy{Name: "plain"}).then(on(ref, events.StrategyEnded{})).
		again().unchanged().
		when(commands.DeclareTrack{TrackSpec: spec}).rejected("strategy-ended")
}

func TestMerges(t *testing.T) {
	t.Parallel()
	hold := func(commit string) commands.HoldMerge {
		return commands.HoldMerge{Repository: "r", Branch: "main", Commit: commit, Waiting: "nobody has planned it"}
	}
	take := func(commit, by string) commands.TakeMerge {
		return commands.TakeMerge{Repository: "r", Branch: "main", Commit: commit, Rollout: by}
	}
	release := commands.ReleaseMerge{Repository: "r", Branch: "main", Commit: "c1", Placed: true}
	alone := hold("c3")
	alone.Alone = true
	heard := hold("c1")
	heard.Heard = day
	ref := commands.MergeRef("r", "main", "c1")
	s := fleet(t).
		when(carry(t, "one", "r1", "r2", "n1")).accepted().when(carry(t, "two", "r1", "r2", "n2")).accepted().
		when(take("c1", "one")).rejected("unknown-merge").
		when(release).rejected("unknown-merge").
		when(hold("c1")).then(on(ref, events.MergeHeld{Repository: "r", Branch: "main", Commit: "c1", Waiting: "nobody has planned it"})).
		when(heard).unchanged().
		when(release).rejected("not-taken").
		when(take("c1", "nine")).rejected("unknown-rollout").
		when(take("c1", "one")).then(on(ref, events.MergeTaken{Rollout: "one"})).
		again().unchanged().
		when(alone).accepted().
		when(take("c3", "one")).rejected("alone", "1 other merge").
		when(take("c3", "two")).accepted().
		when(hold("c2")).accepted().
		when(take("c2", "two")).rejected("alone").
		when(commands.AbortRollout{ID: "one"}).accepted()
	if got := s.world.Merge("r", "main", "c1"); got.Rollout != "one" || !got.Waiting {
		t.Errorf("its rollout is final: the merge is %+v, and should wait with it", got)
	}
	s.when(take("c2", "one")).rejected(rollout.CodeFinal).
		when(carry(t, "three", "r1", "r2", "n3")).accepted().
		when(take("c1", "three")).accepted().
		when(release).then(on(ref, events.MergeReleased{Placed: true})).
		again().unchanged().
		when(hold("c1")).unchanged(). // it is heard of again
		when(take("c1", "two")).rejected("not-waiting")
}
