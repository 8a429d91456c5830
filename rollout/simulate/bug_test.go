package simulate_test

import (
	"slices"
	"testing"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
	"catenary/rollout/simulate"
	"catenary/rollout/stage"
)

// bug is a fault that is planted in what is run.
type bug struct {
	name string
	// rules are those by which it may be found.
	rules []string
	// anew lets the engine die whenever something has happened.
	anew  bool
	parts func() simulate.Parts
}

func bugs() []bug {
	return []bug{
		{name: "a decision skips the before-reference", rules: []string{"before-reference"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: beginningAnyway("plan-stale"), Walker: eager(events.HoldStale, false)}
		}},
		{name: "stale reports count", rules: []string{"end-reported", "failed", "gate"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: remembered(func(seen *events.Seen, _ string) { seen.Source = 0 })}
		}},
		{name: "a step ends by another rollout's report", rules: []string{"end-reported", "failed", "gate"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: remembered(func(seen *events.Seen, rollout string) { seen.Rollout = rollout })}
		}},
		{name: "a restart forgets a notification", rules: []string{"stuck", "due"}, anew: true, parts: func() simulate.Parts {
			return simulate.Parts{Recall: func(e es.Event) es.Event {
				if f, ok := e.Data.(events.RolloutStepEnded); ok {
					f.Notified = nil
					e.Data = f
				}
				return e
			}}
		}},
		{name: "a semaphore is released twice", rules: []string{"semaphore"}, parts: func() simulate.Parts {
			return simulate.Parts{Walker: eager(events.HoldSemaphore, false)}
		}},
		{name: "the failure budget is off by one", rules: []string{"failure-budget"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: strategy(func(t *events.Tier) {
				if t.FailureBudget.Percent == 0 {
					t.FailureBudget = events.ShareOf(t.FailureBudget.Number + 1)
				}
			})}
		}},
		{name: "paused time counts", rules: []string{"end-deadline", "bake"}, parts: func() simulate.Parts { return simulate.Parts{Fold: unpaused()} }},
		{name: "the lease is not renewed", rules: []string{"lease-kept"}, parts: func() simulate.Parts { return simulate.Parts{Unrenewed: true} }},
		{name: "what is under way begins again after a crash", rules: []string{"begin-once"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: beginningAnyway("step-begun"), Walker: eager(events.HoldPending, true)}
		}},
		{name: "a tier is entered while a step is under way", rules: []string{"tier-through"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: hurried}
		}},
		{name: "freezes are judged at the plan alone", rules: []string{"frozen"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(events.FreezeDeclared) any { return events.FreezeLifted{} })}
		}},
		{name: "vetoes are judged at the plan alone", rules: []string{"vetoed"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(events.PublicationVetoed) any { return events.PublicationVetoLifted{} })}
		}},
		{name: "an aborted rollout goes on", rules: []string{"final"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(events.RolloutAborted) any { return events.RolloutBlocked{} })}
		}},
		{name: "the gate takes applied for healthy", rules: []string{"gate"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(f events.AssignmentApplied) any { return events.AssignmentHealthy(f) })}
		}},
		{name: "a roll-back leads to the first version", rules: []string{"revert"}, parts: func() simulate.Parts {
			return simulate.Parts{Plan: func(r plan.Request) plan.Request {
				r.Undo = slices.Clone(r.Undo)
				for i := range r.Undo {
					r.Undo[i].Before = &events.Version{Reference: events.Reference{Package: &events.Package{Name: r.Undo[i].Module, Version: "1"}}}
				}
				return r
			}}
		}},
		{name: "a command is done however late", rules: []string{"semaphore"}, parts: func() simulate.Parts { return simulate.Parts{Undated: true} }},
		{name: "a retry does not wait", rules: []string{"begin-delay"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: strategy(func(t *events.Tier) { t.Delay = "" })}
		}},
		{name: "a step is tried once too often", rules: []string{"retry"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: strategy(func(t *events.Tier) { t.Retry++ })}
		}},
		{name: "a limit does not limit", rules: []string{"limit"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: strategy(func(t *events.Tier) { t.Limit = nil })}
		}},
		{name: "nobody approves a later tier", rules: []string{"tier-approved"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: strategy(func(t *events.Tier) { t.Approval = false })}
		}},
		{name: "a node that is back counts as away", rules: []string{"end-policy", "tier-through"}, parts: func() simulate.Parts {
			return simulate.Parts{Walker: patched(patch{goneForEver: true})}
		}},
		{name: "what a step waits for is forgotten", rules: []string{"begin-dependency"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(f events.RolloutStepsPlanned) any {
				return events.RolloutStepsPlanned{Part: f.Part, Steps: freed(f.Steps)}
			})}
		}},
		{name: "a plan has no order", rules: []string{"begin-required", "begin-edge"}, parts: func() simulate.Parts { return simulate.Parts{Write: unordered} }},
		{name: "half a plan stays", rules: []string{"half-planned"}, parts: func() simulate.Parts {
			return simulate.Parts{Walker: patched(patch{halfUnseen: true})}
		}},
		{name: "what is superseded goes on", rules: []string{"superseded"}, parts: func() simulate.Parts { return simulate.Parts{Decide: outlasting} }},
		{name: "as-of leads to what stood last", rules: []string{"restored"}, parts: func() simulate.Parts {
			last := map[events.StepName]events.Version{}
			return simulate.Parts{Plan: func(r plan.Request) plan.Request {
				if r.Restore != nil {
					now := r.Restore.Told
					r.Restore = &plan.Restore{At: r.Restore.At, Told: last, Scope: r.Restore.Scope}
					last = now
				}
				return r
			}}
		}},
		{name: "a plan is one before its merges are taken", rules: []string{"merge-own"}, parts: func() simulate.Parts { return simulate.Parts{Write: takingLast} }},
		{name: "what goes alone goes with others", rules: []string{"merge-alone"}, parts: func() simulate.Parts {
			return simulate.Parts{
				Track: of(func(f *plan.TrackFacts) {
					for i := range f.Merges {
						f.Merges[i].Alone = false
					}
				}),
				Fold: instead(func(f events.MergeHeld) any { f.Alone = false; return f }),
			}
		}},
		{name: "a track plans twice at once", rules: []string{"track-one"}, parts: func() simulate.Parts {
			return simulate.Parts{Track: of(func(f *plan.TrackFacts) {
				f.Rollouts = slices.DeleteFunc(f.Rollouts, func(r chain.Rollout) bool { return r.Stands() })
			})}
		}},
		{name: "a track plans what was left, over and over", rules: []string{"track-again"}, parts: func() simulate.Parts {
			return simulate.Parts{Track: of(func(f *plan.TrackFacts) {
				f.Rollouts = slices.DeleteFunc(f.Rollouts, func(r chain.Rollout) bool { return !r.Stands() })
			})}
		}},
		{name: "a merge that is heard of late leads back", rules: []string{"track-back"}, parts: func() simulate.Parts {
			return simulate.Parts{Track: of(func(f *plan.TrackFacts) {
				f.Merges = slices.DeleteFunc(f.Merges, func(m chain.Merge) bool { return !m.Stands() })
			})}
		}},
		{name: "a merge is placed by what has failed", rules: []string{"merge-placed"}, parts: func() simulate.Parts {
			return simulate.Parts{Walker: patched(patch{allFinishes: true})}
		}},
		{name: "nobody is told that a value has changed", rules: []string{"handed-unsaid"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: handing(unsaid)}
		}},
		{name: "a value has not changed when the try before has failed", rules: []string{"handed", "handed-unsaid"}, parts: func() simulate.Parts {
			return simulate.Parts{Decide: handing(sinceLast())}
		}},
		{name: "what was reported to hand on is lost", rules: []string{"handed"}, parts: func() simulate.Parts {
			return simulate.Parts{Fold: instead(func(f events.AssignmentApplied) any { f.Outputs = nil; return f })}
		}},
		{name: "a lie is handed on", rules: []string{"handed", "outputs"}, parts: func() simulate.Parts {
			lie := remembered(func(seen *events.Seen, rollout string) { seen.Rollout = rollout })
			return simulate.Parts{Fold: func(e es.Event) es.Event {
				if _, is := e.Data.(events.AssignmentApplied); is {
					return lie(e)
				}
				lie(e)
				return e
			}}
		}},
		{name: "an engine plans for a track by hand", rules: []string{"track-manual"}, parts: func() simulate.Parts {
			return simulate.Parts{Track: func(t chain.Track, f plan.TrackFacts) (chain.Track, plan.TrackFacts) {
				t.On = events.OnPublication
				return t, f
			}}
		}},
	}
}

// mostSeeds is how many seeds a bug may take to be found.
const mostSeeds = 200

// TestBugsAreFound plants one bug after another: each has to be found, and by a rule that is about it.
func TestBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			tools := stage.NewTools()
			for seed := uint64(1); seed <= mostSeeds; seed++ {
				r, err := simulate.Do(simulate.Config{Seed: seed, Anew: b.anew, Parts: b.parts(), Tools: tools})
				if err != nil {
					if !slices.Contains(b.rules, "due") {
						t.Fatal(err)
					}
					t.Logf("seed %d: %v", seed, err)
					return
				}
				found := r.Violations()
				for _, v := range found {
					if slices.Contains(b.rules, v.Rule) {
						t.Logf("seed %d: %v", seed, v)
						return
					}
				}
			}
			t.Errorf("not found in %d histories", mostSeeds)
		})
	}
}
