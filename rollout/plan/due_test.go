package plan_test

import (
	"strings"
	"testing"
	"time"

	"catenary/chain"
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
	base := fleet()
	for name, c := range map[string]struct {
		on      string
		facts   plan.TrackFacts
		targets string
		merges  string
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
		due, hold := plan.NextOf(chain.Track{Track: "shops", Modules: []string{"shop"}, On: c.on}, c.facts)
		var targets, merges []string
		for _, target := range due.Targets {
			targets = append(targets, target.Version.String())
		}
		for _, m := range due.Merges {
			merges = append(merges, m.Commit)
		}
		said := ""
		if hold != nil {
			said = hold.Reason + ": " + hold.WaitsFor
		}
		if strings.Join(targets, " ") != c.targets || strings.Join(merges, " ") != c.merges || !strings.HasPrefix(said, c.hold) || (hold == nil) != (c.hold == "") {
			t.Errorf("%s: targets %v, merges %v, hold %q", name, targets, merges, said)
		}
	}
}
