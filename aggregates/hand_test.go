package aggregates_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/aggregates/assignment"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

type values = map[string]string

// handing is a story in which web requires db, both of them stand on n1 at version 1, and db has said its port there.
func handing(t *testing.T) *story {
	t.Helper()
	facts := also(nodes("n1", "n2"), modules("db"), []es.KeyedEvent{requiring("web", "db")})
	for _, m := range []string{"db", "web"} {
		for _, v := range []string{"1", "2", "3", "4"} {
			facts = append(facts, published(pkg(m, v), "", "", m))
		}
	}
	return given(t, append(facts, assigned("n1", "db", "1"), assigned("n1", "web", "1"))...)
}

// rolls starts a rollout of modules on n1 from one version to another, each after the one before.
func (s *story) rolls(id, from, to string, moduleNames ...string) *story {
	s.t.Helper()
	plan := shape{strategy: events.Strategy{Tiers: []events.Tier{{Name: "all", Retry: 3, Delay: "1ns"}}}}
	for i, m := range moduleNames {
		step := events.PlannedStep{Tier: "all", StepName: at(m), Before: &events.Version{Reference: pkg(m, from)}, After: &events.Version{Reference: pkg(m, to)}}
		if i > 0 {
			step.WaitsFor = []events.WaitFor{{StepName: at(moduleNames[i-1])}}
		}
		plan.steps = append(plan.steps, step)
		plan.head.Targets = append(plan.head.Targets, events.Target{Module: m, Version: *step.After})
	}
	return s.when(plan.whole(s.t, id)).accepted().when(commands.StartRollout{ID: id}).accepted()
}

func at(module string) events.StepName { return events.StepName{Node: "n1", Module: module} }

// says lets n1 report of a module, at a version that a rollout told.
func (s *story) says(id, module, version, outcome string, outputs values) *story {
	s.t.Helper()
	return s.when(commands.Observe{Seen: events.Seen{Node: "n1", Module: module, Reference: pkg(module, version), Rollout: id, Outputs: outputs}, Outcome: outcome}).accepted()
}

// does lets a module go to a version, and hand on values.
func (s *story) does(id, module, version string, outputs values) *story {
	s.t.Helper()
	return s.when(commands.BeginStep{ID: id, StepName: at(module)}).accepted().says(id, module, version, commands.OutcomeApplied, outputs).
		when(commands.EndStep{ID: id, StepName: at(module), Attempt: 1, StepResult: events.StepResult{Outcome: events.StepDone}}).accepted()
}

// begins begins web, and demands that it is handed that.
func (s *story) begins(id, version string, attempt int, inputs ...events.Handed) *story {
	s.t.Helper()
	facts := []es.KeyedEvent{
		on(commands.RolloutRef(id), events.RolloutStepBegun{Tier: "all", StepName: at("web"), Attempt: attempt, Inputs: inputs}),
		on(commands.AssignmentRef("n1", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n1", Module: "web", Reference: pkg("web", version), Rollout: id, Inputs: inputs}}),
	}
	o := s.when(commands.BeginStep{ID: id, StepName: at("web")})
	again, err := restored(s.t, snapshotOf(s.t, s.world)).Decide(o.command)
	if diff := cmp.Diff(facts, again); diff != "" || err != nil {
		s.t.Errorf("a writer that starts from a snapshot decides otherwise, with %v (-want +got):\n%s", err, diff)
	}
	return o.then(facts...)
}

func byDB(v values, changed ...string) events.Handed {
	return events.Handed{StepName: at("db"), Values: v, Changed: changed}
}

// TestOutputsPassAlongEdges hands on what was reported, and says what of it has changed for whoever gets it.
func TestOutputsPassAlongEdges(t *testing.T) {
	t.Parallel()
	s := handing(t).rolls("r", "1", "2", "db", "web").
		when(commands.BeginStep{ID: "r", StepName: at("db")}).accepted().
		says("r", "db", "2", commands.OutcomeApplied, values{"port": "5433", "name": "shop"}).
		says("r", "db", "2", commands.OutcomeHealthy, nil).
		// What others say that it hands on is not what its node has said.
		when(commands.EndStep{ID: "r", StepName: at("db"), Attempt: 1, StepResult: events.StepResult{Outcome: events.StepDone, Outputs: values{"port": "1"}}}).then(
		on(commands.RolloutRef("r"), events.RolloutStepEnded{
			Tier: "all", StepName: at("db"), Attempt: 1, By: events.SettledByReport,
			StepResult: events.StepResult{Outcome: events.StepDone, Outputs: values{"port": "5433", "name": "shop"}},
		})).
		begins("r", "2", 1, byDB(values{"port": "5433", "name": "shop"}, "name", "port")).
		says("r", "web", "2", commands.OutcomeApplied, nil).
		when(commands.EndStep{ID: "r", StepName: at("web"), Attempt: 1, StepResult: events.StepResult{Outcome: events.StepDone}}).accepted()
	// The next rollout hands on the same name, and another port.
	s.rolls("s", "2", "3", "db", "web").does("s", "db", "3", values{"port": "5434", "name": "shop"}).
		begins("s", "3", 1, byDB(values{"port": "5434", "name": "shop"}, "port"))
	// A try that failed has brought nothing about: what has changed for it has changed for the next one too.
	s.says("s", "web", "3", commands.OutcomeApplyFailed, nil).
		when(commands.EndStep{ID: "s", StepName: at("web"), Attempt: 1, StepResult: events.StepResult{Outcome: events.StepFailed}}).accepted().
		at(day.Add(1)).begins("s", "3", 2, byDB(values{"port": "5434", "name": "shop"}, "port")).
		says("s", "web", "3", commands.OutcomeApplied, nil).
		when(commands.EndStep{ID: "s", StepName: at("web"), Attempt: 2, StepResult: events.StepResult{Outcome: events.StepDone}}).accepted()
	// One without db is handed what that hands on still.
	s.rolls("u", "3", "4", "web").begins("u", "4", 1, byDB(values{"port": "5434", "name": "shop"})).
		says("u", "web", "4", commands.OutcomeApplied, nil)
}

// TestWhatIsHandedOnWithoutARollout is what was reported of an assignment by hand too.
func TestWhatIsHandedOnWithoutARollout(t *testing.T) {
	t.Parallel()
	s := handing(t).says("", "db", "1", commands.OutcomeApplied, values{"port": "5432"})
	told := func(to string, inputs ...events.Handed) es.KeyedEvent {
		return on(commands.AssignmentRef("n1", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n1", Module: "web", Reference: pkg("web", to), Inputs: inputs}})
	}
	s.when(assign("n1", "web", "2")).then(told("2", byDB(values{"port": "5432"}, "port")))
	// Nothing has come of it yet: it has changed still.
	s.when(assign("n1", "web", "3")).then(told("3", byDB(values{"port": "5432"}, "port"))).says("", "web", "3", commands.OutcomeApplied, nil)
	// A value that is gone has changed, once.
	s.says("", "db", "1", commands.OutcomeApplied, nil).when(assign("n1", "web", "4")).then(told("4", byDB(nil, "port"))).says("", "web", "4", commands.OutcomeApplied, nil)
	s.when(assign("n1", "web", "3")).then(told("3"))
	// While db is told another version, what it has handed on last is what there is.
	s.says("", "db", "1", commands.OutcomeApplied, values{"port": "1"}).says("", "web", "3", commands.OutcomeApplied, nil).
		when(assign("n1", "db", "2")).accepted().when(assign("n1", "web", "1")).then(told("1", byDB(values{"port": "1"}, "port")))
	if got := restored(t, snapshotOf(t, s.world)).Assignment("n1", "db").Outputs(); !cmp.Equal(got, values{"port": "1"}) {
		t.Errorf("db hands on %v", got)
	}
	// What has moved was never handed anything where it is now; what has ended hands on nothing.
	moved := events.Told{Node: "n2", Module: "web", Reference: pkg("web", "1"), Inputs: []events.Handed{byDB(values{"port": "1"}, "port")}}
	s.when(commands.Move{Node: "n1", Module: "web", To: "n2"}).then(
		on(commands.AssignmentRef("n1", "web"), events.AssignmentMovedOut{Node: "n1", Module: "web", To: "n2"}),
		on(commands.AssignmentRef("n2", "web"), events.AssignmentMovedIn{Told: moved, From: "n1"}),
		on(commands.AssignmentRef("n2", "db"), events.AssignmentAssigned{Told: events.Told{Node: "n2", Module: "db", Reference: pkg("db", "4"), RequiredBy: []string{"web"}}}),
	).when(unassign("n1", "db")).accepted()
	if got := s.world.Assignment("n1", "db").Outputs(); got != nil {
		t.Errorf("what has ended hands on %v", got)
	}
}

// TestWhatHasEndedIsHandedAfterwards says what of its values has changed to a node that was told to remove a module, and may not have done it when it is
// told to run it again.
func TestWhatHasEndedIsHandedAfterwards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// removed is what the node reports of the end; nil for nothing.
		removed *events.Seen
		pended  bool
		want    []events.Handed
	}{
		"it has said nothing":     {want: []events.Handed{byDB(values{"name": "shop"}, "name", "port")}},
		"it waited meanwhile":     {pended: true, want: []events.Handed{byDB(values{"name": "shop"}, "name", "port")}},
		"it has removed it":       {removed: &events.Seen{}, want: []events.Handed{byDB(values{"name": "shop"}, "name")}},
		"a rollout of no concern": {removed: &events.Seen{Rollout: "r99"}, want: []events.Handed{byDB(values{"name": "shop"}, "name", "port")}},
		"it removed it before":    {removed: &events.Seen{Source: 1}, want: []events.Handed{byDB(values{"name": "shop"}, "name", "port")}},
	} {
		s := handing(t).says("", "db", "1", commands.OutcomeApplied, values{"port": "5432"}).when(assign("n1", "web", "2")).accepted().
			says("", "web", "2", commands.OutcomeApplied, nil).when(unassign("n1", "web")).accepted()
		if c.removed != nil {
			seen := *c.removed
			seen.Node, seen.Module = "n1", "web"
			s.when(commands.Observe{Seen: seen, Outcome: commands.OutcomeRemoved}).accepted()
		}
		if c.pended {
			s.when(commands.Pend{Node: "n1", Module: "web", Reference: pkg("web", "3")}).accepted()
		}
		s.says("", "db", "1", commands.OutcomeApplied, values{"name": "shop"})
		want := on(commands.AssignmentRef("n1", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n1", Module: "web", Reference: pkg("web", "2"), Inputs: c.want}})
		o := s.when(assign("n1", "web", "2"))
		again, err := restored(t, snapshotOf(t, s.world)).Decide(o.command)
		if diff := cmp.Diff([]es.KeyedEvent{want}, again); diff != "" || err != nil {
			t.Errorf("%s: a writer that starts from a snapshot decides otherwise, with %v (-want +got):\n%s", name, err, diff)
		}
		o.then(want)
	}
	// One that comes back from another node is told what is gone of what it was handed when it was here.
	s := handing(t).says("", "db", "1", commands.OutcomeApplied, values{"port": "5432"}).when(assign("n1", "web", "2")).accepted().
		when(commands.Move{Node: "n1", Module: "web", To: "n2"}).accepted().says("", "db", "1", commands.OutcomeApplied, nil).when(assign("n2", "web", "3")).accepted()
	s.when(commands.Observe{Seen: events.Seen{Node: "n2", Module: "web", Reference: pkg("web", "3")}, Outcome: commands.OutcomeApplied}).accepted()
	back := events.Told{Node: "n1", Module: "web", Reference: pkg("web", "3"), Inputs: []events.Handed{byDB(nil, "port")}}
	s.when(commands.Move{Node: "n2", Module: "web", To: "n1"}).then(
		on(commands.AssignmentRef("n2", "web"), events.AssignmentMovedOut{Node: "n2", Module: "web", To: "n1"}),
		on(commands.AssignmentRef("n1", "web"), events.AssignmentMovedIn{Told: back, From: "n2"}),
		on(commands.AssignmentRef("n2", "db"), events.AssignmentEnded{Node: "n2", Module: "db"}),
	)
}

// TestRightAlreadyHandsOn lets a step that is done without a report hand on what stands there.
func TestRightAlreadyHandsOn(t *testing.T) {
	t.Parallel()
	s := handing(t).rolls("r", "1", "2", "db", "web").when(assign("n1", "db", "2")).accepted().
		says("", "db", "2", commands.OutcomeApplied, values{"port": "5432"})
	s.when(commands.BeginStep{ID: "r", StepName: at("db")}).then(on(commands.RolloutRef("r"), events.RolloutStepEnded{
		Tier: "all", StepName: at("db"), By: events.SettledAlready, From: events.StepWaiting,
		StepResult: events.StepResult{Outcome: events.StepDone, Outputs: values{"port": "5432"}},
	})).begins("r", "2", 1, byDB(values{"port": "5432"}, "port"))
}

// TestTooMuchIsNotHandedOn refuses what is too much, with the size and the limit.
func TestTooMuchIsNotHandedOn(t *testing.T) {
	t.Parallel()
	large := values{"text": strings.Repeat("x", commands.MaxTextBytes), "more": strings.Repeat("y", commands.MaxTextBytes)}
	s := handing(t)
	err := commands.Observe{Seen: events.Seen{Node: "n1", Module: "db", Reference: pkg("db", "1"), Outputs: large}, Outcome: commands.OutcomeApplied}.Validate()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("8213 bytes as JSON: the limit is %d", commands.MaxOutputsBytes)) {
		t.Errorf("got error %v", err)
	}
	// Each of five may hand on so much, and web may not be handed all of it.
	s.and(requiring("a"), requiring("b"), requiring("c"), requiring("d"), requiring("e"), requiring("site", "a", "b", "c", "d", "e"))
	for _, m := range []string{"a", "b", "c", "d", "e"} {
		s.and(assigned("n1", m, "1")).says("", m, "1", commands.OutcomeApplied, values{"text": large["text"]})
	}
	s.when(assign("n1", "site", "1")).rejected(assignment.CodeInputsTooLarge, "site on n1", "by 5 others", fmt.Sprintf("the limit is %d", commands.MaxInputsBytes))
}
