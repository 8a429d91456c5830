package plan_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"catenary/chain"
	"catenary/commands"
	"catenary/events"
	"catenary/rollout/plan"
)

func TestWhatATrackPlans(t *testing.T) {
	t.Parallel()
	merge := func(commit string, hour int, alone bool) chain.Merge {
		return chain.Merge{Repository: "git/shop", Branch: "main", Commit: commit, Merged: noon.Add(time.Duration(hour) * time.Hour), Alone: alone, Waiting: "not planned"}
	}
	build := func(id, commit string) chain.Build {
		ref := pkg("shop", id).Reference
		return chain.Build{ID: id, Module: "shop", Repository: "git/shop", Commit: commit, Published: &ref, At: noon}
	}
	published := func(version string, hour int, veto *chain.Veto) chain.Published {
		return chain.Published{Reference: pkg("shop", version).Reference, Module: "shop", At: noon.Add(time.Duration(hour) * time.Hour), Vetoed: veto}
	}
	placed := func(commit string, hour int) chain.Merge {
		m := merge(commit, hour, false)
		m.Waiting, m.Placed = "", noon
		return m
	}
	ended := func(id, state, build, digest string, hour int) chain.Rollout {
		return chain.Rollout{
			ID: id, Track: "shops", State: state, Digest: digest, Builds: []events.Target{{Module: "shop", Version: pkg("shop", build)}},
			Times: chain.Times{Ended: noon.Add(time.Duration(hour) * time.Hour)},
		}
	}
	// withMore is a rollout that carried something besides: that stands already, and is due no more.
	withMore := func(r chain.Rollout) []chain.Rollout {
		r.Builds = append(r.Builds, events.Target{Module: "lib", Version: pkg("lib", "1")})
		return []chain.Rollout{r}
	}
	base := fleet()
	for name, c := range map[string]struct {
		on    string
		facts plan.TrackFacts
		// stands is the commit that stands of the module.
		stands  string
		targets string
		merges  string
		again   string
		placed  string
		hold    string
	}{
		"by hand": {on: events.OnManual, hold: "manual"},
		"a rollout of its own is under way": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false)}, Rollouts: []chain.Rollout{{ID: "r1", Track: "other"}, {ID: "r2", Track: "shops", State: chain.RolloutPaused}},
		}, hold: "rollout: rollout r2 to come to its end: it is paused"},
		"another one moves the module": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false)}, Rollouts: []chain.Rollout{
				{ID: "r1", State: chain.RolloutPlanned, Builds: []events.Target{{Module: "shop"}}},
				{ID: "r2", State: chain.RolloutRunning, Builds: []events.Target{{Module: "other"}}},
				{ID: "r3", State: chain.RolloutPlanned, Reverts: "r0", Builds: []events.Target{{Module: "shop"}}},
			},
		}, hold: "rollout: rollout r3 to come to its end: it is planned"},
		"what came to nothing is not planned again": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false)}, Builds: []chain.Build{build("b1", "c1")}, Rollouts: []chain.Rollout{ended("r1", chain.RolloutFailed, "b1", "digest", 1)},
		}, hold: "rollout: something newer, or somebody to trigger it: rollout r1 carried the same and was failed"},
		"unless somebody asks": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false)}, Builds: []chain.Build{build("b1", "c1")}, Rollouts: []chain.Rollout{ended("r1", chain.RolloutFailed, "b1", "digest", 1)}, Triggered: true,
		}, targets: "shop@b1", merges: "c1", again: "r1"},
		"half a plan was none": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false)}, Builds: []chain.Build{build("b1", "c1")}, Rollouts: []chain.Rollout{
				ended("r1", chain.RolloutFinished, "b0", "digest", 1), ended("r2", chain.RolloutAborted, "b1", "", 2),
			},
		}, targets: "shop@b1", merges: "c1"},
		"what has finished and carried the same is looked at": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false)}, Builds: []chain.Build{build("b1", "c1")}, Rollouts: []chain.Rollout{ended("r1", chain.RolloutFinished, "b1", "digest", 1)},
		}, targets: "shop@b1", merges: "c1", again: "r1"},
		"what has finished and carried that and more is looked at": {on: events.OnPublication, facts: plan.TrackFacts{
			Published: []chain.Published{published("r2", 2, nil)}, Rollouts: withMore(ended("r1", chain.RolloutFinished, "r2", "digest", 1)),
		}, targets: "shop@r2", again: "r1"},
		"what came to nothing and carried that and more is not planned again": {on: events.OnPublication, facts: plan.TrackFacts{
			Published: []chain.Published{published("r2", 2, nil)}, Rollouts: withMore(ended("r1", chain.RolloutFailed, "r2", "digest", 1)),
		}, hold: "rollout: something newer, or somebody to trigger it: rollout r1 carried the same and was failed"},
		"what has finished and carried something else says nothing": {on: events.OnPublication, facts: plan.TrackFacts{
			Published: []chain.Published{published("r3", 3, nil)}, Rollouts: withMore(ended("r1", chain.RolloutFinished, "r2", "digest", 1)),
		}, targets: "shop@r3"},
		"by hand, and somebody asks": {on: events.OnManual, facts: plan.TrackFacts{
			Published: []chain.Published{published("r2", 2, nil)}, Triggered: true,
		}, targets: "shop@r2"},
		"a merge heard of late leads back to nothing": {on: events.OnMerge, stands: "c2", facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false), placed("c2", 2)}, Builds: []chain.Build{build("b1", "c1"), build("b2", "c2")},
		}, placed: "c1", hold: "nothing-new: a merge that is newer than what stands"},
		"unless what came after it was taken back": {on: events.OnMerge, stands: "c0", facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false), placed("c2", 2)}, Builds: []chain.Build{build("b1", "c1"), build("b2", "c2")},
		}, targets: "shop@b1", merges: "c1"},
		"it goes with a newer one": {on: events.OnMerge, stands: "c2", facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false), placed("c2", 2), merge("c3", 3, false)}, Builds: []chain.Build{build("b1", "c1"), build("b3", "c3")},
		}, targets: "shop@b3", merges: "c1 c3"},
		"no merge": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{{Repository: "git/shop", Commit: "c0"}, {Repository: "git/other", Commit: "c1", Waiting: "x"}},
		}, hold: "nothing-new"},
		"merges go together, the newest stands for them": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c2", 2, false), merge("c1", 1, false)}, Builds: []chain.Build{build("b1", "c1"), build("b2", "c2")},
		}, targets: "shop@b2", merges: "c1 c2"},
		"what goes alone does": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, true), merge("c2", 2, false)}, Builds: []chain.Build{build("b1", "c1"), build("b2", "c2")},
		}, targets: "shop@b1", merges: "c1"},
		"the others go before it": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false), merge("c2", 2, true), merge("c3", 3, false)}, Builds: []chain.Build{build("b1", "c1")},
		}, targets: "shop@b1", merges: "c1"},
		"nothing built yet": {on: events.OnMerge, facts: plan.TrackFacts{
			Merges: []chain.Merge{merge("c1", 1, false)}, Builds: []chain.Build{{ID: "b1", Module: "shop", Repository: "git/shop", Commit: "c1"}},
		}, hold: "build: a build that publishes shop at c1"},
		"the newest publication": {on: events.OnPublication, facts: plan.TrackFacts{Published: []chain.Published{published("r2", 2, nil), published("r1", 1, nil)}}, targets: "shop@r2"},
		"but for a vetoed one":   {on: events.OnPublication, facts: plan.TrackFacts{Published: []chain.Published{published("r3", 3, &chain.Veto{}), published("r2", 2, nil)}}, targets: "shop@r2"},
		"it stands already":      {on: events.OnPublication, facts: plan.TrackFacts{Published: []chain.Published{published("r1", 1, nil)}}, hold: "nothing-new"},
	} {
		c.facts.Modules, c.facts.Told = base.Modules, base.Told
		if c.stands != "" {
			c.facts.Told = map[events.StepName]events.Version{{Node: "n1", Module: "shop"}: {Reference: pkg("shop", "x").Reference, Commit: c.stands}}
		}
		due, hold := plan.NextOf(chain.Track{Track: "shops", Modules: []string{"shop"}, On: c.on}, c.facts)
		var targets, merges, behind []string
		for _, target := range due.Targets {
			targets = append(targets, target.Version.String())
		}
		for _, m := range due.Merges {
			merges = append(merges, m.Commit)
		}
		for _, m := range due.Placed {
			behind = append(behind, m.Commit)
		}
		said := ""
		if hold != nil {
			said = hold.Reason + ": " + hold.WaitsFor
		}
		if strings.Join(targets, " ") != c.targets || strings.Join(merges, " ") != c.merges || strings.Join(behind, " ") != c.placed || due.Again != c.again || !strings.HasPrefix(said, c.hold) || (hold == nil) != (c.hold == "") {
			t.Errorf("%s: targets %v, merges %v, placed %v, again %q, hold %q", name, targets, merges, behind, due.Again, said)
		}
	}
}

// TestATrackLeavesWhatWasLeft demands that a track does not plan over and over for nodes that its rollout has left out.
func TestATrackLeavesWhatWasLeft(t *testing.T) {
	t.Parallel()
	track := chain.Track{Track: "shops", Modules: []string{"shop"}, On: events.OnPublication}
	step := func(node, version, outcome string) chain.Step {
		after := pkg("shop", version)
		return chain.Step{Node: node, Module: "shop", After: &after, Outcome: outcome}
	}
	refresh := func(s chain.Step) chain.Step { s.Refresh = true; return s }
	for name, c := range map[string]struct {
		// last is what the rollout before did of n1 and n2, which are at r1 yet.
		last     []chain.Step
		byPerson bool
		steps    int
		hold     string
	}{
		"none before":                  {steps: 2},
		"both were left out":           {last: []chain.Step{step("n1", "r2", events.StepSkipped), step("n2", "r2", events.StepFailed)}, hold: events.HoldRollout},
		"somebody asks":                {last: []chain.Step{step("n1", "r2", events.StepSkipped), step("n2", "r2", events.StepFailed)}, byPerson: true, steps: 2},
		"one of them is new":           {last: []chain.Step{step("n1", "r2", events.StepSkipped)}, steps: 2},
		"one was done, and is back":    {last: []chain.Step{step("n1", "r2", events.StepSkipped), step("n2", "r2", events.StepDone)}, steps: 2},
		"both were not told anew":      {last: []chain.Step{refresh(step("n1", "r2", events.StepSkipped)), refresh(step("n2", "r2", events.StepSkipped))}, steps: 2},
		"another version was left out": {last: []chain.Step{step("n1", "r3", events.StepSkipped), step("n2", "r3", events.StepSkipped)}, steps: 2},
	} {
		facts := fleet()
		facts.Told = map[events.StepName]events.Version{{Node: "n1", Module: "shop"}: pkg("shop", "r1"), {Node: "n2", Module: "shop"}: pkg("shop", "r1")}
		before := chain.WholeRollout{Rollout: chain.Rollout{ID: "r", State: chain.RolloutFinished}, All: c.last}
		made, hold, err := plan.Carry(facts, track, plan.Due{Targets: []events.Target{target("shop", "r2")}}, before, byTier(), plan.Asked{Now: noon, ByPerson: c.byPerson})
		said := ""
		if hold != nil {
			said = hold.Reason
		}
		if err != nil || len(made.Steps) != c.steps || said != c.hold {
			t.Errorf("%s: %d steps, hold %q (%v), want %d, %q", name, len(made.Steps), said, err, c.steps, c.hold)
		}
	}
}

// TestMergesAreTakenBeforeAPlanIsOne demands that a rollout has its merges before its plan is closed.
func TestMergesAreTakenBeforeAPlanIsOne(t *testing.T) {
	t.Parallel()
	step := func(node string) events.PlannedStep {
		return events.PlannedStep{Tier: "all", StepName: events.StepName{Node: node, Module: "shop"}}
	}
	many := make([]events.PlannedStep, commands.MaxPartSteps+1)
	for i := range many {
		many[i] = step("n" + strconv.Itoa(i))
	}
	merges := []chain.Merge{{Repository: "git/shop", Branch: "main", Commit: "c1"}, {Repository: "git/shop", Branch: "main", Commit: "c2"}}
	for name, c := range map[string]struct {
		steps  []events.PlannedStep
		merges []chain.Merge
		want   string
	}{
		"nothing":             {merges: merges},
		"no merges":           {steps: many[:1], want: "1:1 closed"},
		"one part":            {steps: many[:1], merges: merges, want: "1:1, take c1, take c2, 2:0 closed"},
		"two parts":           {steps: many, merges: merges[:1], want: "1:250, take c1, 2:1 closed"},
		"two without a merge": {steps: many, want: "1:250, 2:1 closed"},
	} {
		list, err := plan.TrackPlan{Plan: plan.Plan{ID: "r1", Steps: c.steps}, Merges: c.merges}.Commands(nil)
		var said []string
		for _, p := range list {
			switch p := p.(type) {
			case commands.PlanRollout:
				text := fmt.Sprintf("%d:%d", p.Part, len(p.Steps))
				if p.Digest != "" && p.Count == len(c.steps) {
					text += " closed"
				}
				said = append(said, text)
			case commands.TakeMerge:
				said = append(said, "take "+p.Commit)
			}
		}
		if got := strings.Join(said, ", "); got != c.want || err != nil {
			t.Errorf("%s: %s (%v), want %s", name, got, err, c.want)
		}
	}
}
