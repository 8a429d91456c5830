package stage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/walk"
)

func TestTiersAreWalked(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.modules("web")
	p.node("web", names(6)...)
	p.start("r", `{"tiers":[{"name":"canary"},{"name":"rest","concurrency":2}]}`,
		planned("canary", "web", "n1"), planned("rest", "web", "n2"), planned("rest", "web", "n3"), planned("rest", "web", "n4", "n2"),
		planned("rest", "web", "n5"), planned("rest", "web", "n6", "n4", "n5"))
	p.settle()
	p.pending("n1")
	p.reason("r", "n2", events.HoldTier)
	p.reason("r", "n1", events.HoldPending)
	p.report("web", commands.OutcomeApplied, "n1")
	p.pending("n2", "n3")
	if b := p.reason("r", "n4", events.HoldDependency); b.WaitsFor != "web on n2, which is pending" {
		t.Errorf("it waits for %q", b.WaitsFor)
	}
	p.reason("r", "n5", events.HoldConcurrency)
	p.report("web", commands.OutcomeApplied, "n2")
	p.pending("n3", "n4")
	p.report("web", commands.OutcomeApplied, "n3", "n4")
	p.pending("n5")
	p.report("web", commands.OutcomeApplied, "n5")
	p.pending("n6")
	p.report("web", commands.OutcomeApplied, "n6")
	p.finished("r", events.RolloutFinished{Done: 6})
	if p.Walk.Knows("r") || p.Walk.Blocked("r", p.Now) != nil || p.Walk.InFlight() != 0 {
		t.Error("what is final is kept")
	}
	p.unrefused()
}

// TestReportsThatSayNothing lets reports of others come in: none of them ends the step.
func TestReportsThatSayNothing(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.modules("web")
	p.node("web", "n1")
	p.start("r", `{"tiers":[{"name":"all","timeout":"1m"}]}`, each("all", "web", "n1")...)
	p.settle()
	told := p.Told("n1", "web")
	for _, seen := range []events.Seen{
		{Node: "n1", Module: "web", Reference: told.Reference, Rollout: "other", Source: told.Sequence},
		{Node: "n1", Module: "web", Reference: pkg("web", "1").Reference, Rollout: "r", Source: told.Sequence},
		{Node: "n1", Module: "web", Reference: told.Reference, Source: told.Sequence},
		{Node: "n1", Module: "web", Reference: told.Reference, Rollout: "r", Source: told.Sequence - 1},
	} {
		_, err := p.Send("n1", commands.Observe{Seen: seen, Outcome: commands.OutcomeApplied})
		p.ok(err)
		p.settle()
		p.pending("n1")
	}
	p.wait(time.Minute) // case E27's engine side: it ends as unknown, and never as done
	if f, ok := p.last("r").(events.RolloutFailed); !ok || p.count(events.TypeRolloutStepEnded) != 1 {
		t.Errorf("it ends with %+v", f)
	}
	p.unrefused()
}

// TestPolicies walks one node, or a few, under one policy each.
func TestPolicies(t *testing.T) {
	t.Parallel()
	const all = `{"tiers":[{"name":"all"`
	for name, play := range map[string]func(play){
		"approval": func(p play) {
			p.start("r", `{"tiers":[{"name":"a"},{"name":"b","approval":true}]}`, append(each("a", "web", "n1"), each("b", "web", "n2")...)...)
			p.settle()
			p.report("web", commands.OutcomeApplied, "n1")
			p.reason("r", "", events.HoldApproval)
			p.wait(time.Minute)
			if b, ok := p.last("r").(events.RolloutBlocked); !ok || b.Holds[0].Reason != events.HoldApproval {
				p.Errorf("recorded is %+v", p.last("r"))
			}
			p.wait(time.Hour)
			if n := p.count(events.TypeRolloutBlocked); n != 1 {
				p.Errorf("the same is said %d times", n)
			}
			p.do(commands.ApproveRollout{ID: "r"})
			p.settle()
			p.pending("n2")
		},
		"bake": func(p play) {
			p.start("r", `{"tiers":[{"name":"a","bake":"10m"},{"name":"b"}]}`, append(each("a", "web", "n1"), each("b", "web", "n2")...)...)
			p.settle()
			p.report("web", commands.OutcomeApplied, "n1")
			if b := p.reason("r", "", events.HoldBake); !b.Until.Equal(noon.Add(10 * time.Minute)) {
				p.Errorf("it bakes until %v", b.Until)
			}
			p.wait(9 * time.Minute).pending()
			p.do(commands.PauseRollout{ID: "r"})
			p.wait(time.Hour).pending()
			p.do(commands.ResumeRollout{ID: "r"})
			p.wait(30 * time.Second).pending()
			p.wait(30 * time.Second).pending("n2")
		},
		"not well while it bakes": func(p play) {
			p.start("r", `{"tiers":[{"name":"a","bake":"10m"},{"name":"b"}]}`, append(each("a", "web", "n1"), each("b", "web", "n2")...)...)
			p.settle()
			p.report("web", commands.OutcomeApplied, "n1")
			p.report("web", commands.OutcomeUnhealthy, "n1")
			if _, failed := p.last("r").(events.RolloutFailed); !failed {
				p.Errorf("it goes on with %+v", p.last("r"))
			}
		},
		"gate": func(p play) {
			p.start("r", `{"tiers":[{"name":"a","gate":"healthy"},{"name":"b"}]}`, append(each("a", "web", "n1", "n2"), each("b", "web", "n3")...)...)
			p.settle()
			p.report("web", commands.OutcomeApplied, "n1", "n2")
			p.reason("r", "", events.HoldGate)
			p.report("web", commands.OutcomeHealthy, "n1")
			p.pending()
			p.report("web", commands.OutcomeHealthy, "n2")
			p.pending("n3")
		},
		"retry": func(p play) {
			p.start("r", all+`,"retry":1,"delay":"5m"}]}`, each("all", "web", "n1")...)
			p.settle()
			p.report("web", commands.OutcomeApplyFailed, "n1")
			p.pending()
			if b := p.reason("r", "n1", events.HoldRetry); !b.Until.Equal(noon.Add(5 * time.Minute)) {
				p.Errorf("it waits until %v", b.Until)
			}
			p.wait(5 * time.Minute).pending("n1")
			p.report("web", commands.OutcomeApplyFailed, "n1")
			if _, failed := p.last("r").(events.RolloutFailed); !failed {
				p.Errorf("it goes on with %+v", p.last("r"))
			}
		},
		"tries of an earlier plan count": func(p play) {
			step := planned("all", "web", "n1")
			step.Tried = 1
			p.start("r", all+`,"retry":1}]}`, step)
			p.settle()
			p.report("web", commands.OutcomeApplyFailed, "n1")
			if _, failed := p.last("r").(events.RolloutFailed); !failed {
				p.Errorf("it goes on with %+v", p.last("r"))
			}
		},
		"budget": func(p play) {
			p.start("r", all+`,"failure-budget":1}]}`, each("all", "web", "n1", "n2", "n3")...)
			p.settle()
			p.report("web", commands.OutcomeApplyFailed, "n1")
			p.pending("n2", "n3")
			p.report("web", commands.OutcomeApplyFailed, "n2")
			if _, failed := p.last("r").(events.RolloutFailed); !failed {
				p.Errorf("it goes on with %+v", p.last("r"))
			}
			p.pending("n3") // it was told, and stays so until it is settled
			p.report("web", commands.OutcomeApplied, "n3")
			p.pending()
		},
		"what waits for something that failed is skipped": func(p play) {
			p.start("r", all+`,"failure-budget":1}]}`, planned("all", "web", "n1"), planned("all", "web", "n2", "n1"), planned("all", "web", "n3", "n2"))
			p.settle()
			p.report("web", commands.OutcomeApplyFailed, "n1")
			p.finished("r", events.RolloutFinished{Failed: 1, Skipped: 2})
		},
		"semaphore across rollouts": func(p play) {
			const db = all + `,"semaphores":["db:2",":3"]}]}`
			p.start("r1", db, each("all", "web", "n1", "n2", "n3")...)
			p.start("r2", db, each("all", "web", "n4", "n5")...)
			p.settle()
			p.pending("n1", "n2")
			if b := p.reason("r2", "n4", events.HoldSemaphore); b.WaitsFor != "semaphore db:2 to come free, which web on n1 of rollout r1 holds, and 1 more" {
				p.Errorf("it waits for %q", b.WaitsFor)
			}
			p.report("web", commands.OutcomeApplied, "n1", "n2")
			p.pending("n3", "n4")
			p.report("web", commands.OutcomeApplied, "n3")
			p.pending("n4", "n5")
		},
		"semaphore that a tier names twice": func(p play) {
			p.start("r", all+`,"semaphores":["db:3","db:2",":3",":3"]}]}`, each("all", "web", "n1", "n2", "n3")...)
			p.settle()
			p.pending("n1", "n2")
			p.report("web", commands.OutcomeApplied, "n1", "n2")
			p.pending("n3")
		},
		"limit": func(p play) {
			p.start("r", all+`,"timeout":"2h","limit":{"per-minute":2,"burst":2}}]}`, each("all", "web", names(6)...)...)
			p.settle()
			p.pending("n1", "n2")
			if b := p.reason("r", "n3", events.HoldLimit); !b.Until.Equal(noon.Add(30 * time.Second)) {
				p.Errorf("it waits until %v", b.Until)
			}
			p.wait(29*time.Second).pending("n1", "n2")
			p.wait(time.Second).pending("n1", "n2", "n3")
			p.wait(time.Hour).ok(nil)
			if n := p.count(events.TypeRolloutStepBegun); n > 5 {
				p.Errorf("%d have begun, and a burst is 2", n)
			}
		},
		"freeze": func(p play) {
			p.do(commands.DeclareFreeze{Name: "afternoon", Selector: events.Selector{Labels: map[string]string{"node": "n1"}}, Window: &events.Window{
				Recurring: &events.Recurring{From: "13:00", To: "15:00", Zone: "Europe/Berlin"},
			}})
			p.start("r", all+`}]}`, each("all", "web", "n1", "n2")...)
			p.settle()
			p.pending("n2")
			b := p.reason("r", "n1", events.HoldFrozen)
			if !b.Until.Equal(noon.Add(time.Hour)) || !strings.Contains(b.WaitsFor, "Europe/Berlin") {
				p.Errorf("it is held by %+v", b)
			}
			p.report("web", commands.OutcomeApplied, "n2")
			p.wait(59 * time.Minute).pending()
			p.wait(time.Minute).pending("n1")
		},
		"freeze that never opens": func(p play) {
			p.do(commands.DeclareFreeze{Name: "always", Window: &events.Window{Recurring: &events.Recurring{From: "00:00", To: "24:00", Zone: "UTC"}}})
			p.start("r", all+`}]}`, each("all", "web", "n1")...)
			p.settle()
			if b := p.reason("r", "n1", events.HoldFrozen); b.WaitsFor != "freeze always to be lifted" {
				p.Errorf("it waits for %q", b.WaitsFor)
			}
		},
		"freeze lifted": func(p play) {
			p.do(commands.DeclareFreeze{Name: "all"})
			p.start("r", all+`}]}`, each("all", "web", "n1")...)
			p.settle()
			p.reason("r", "n1", events.HoldFrozen)
			p.do(commands.LiftFreeze{Name: "all"})
			p.settle()
			p.pending("n1")
		},
		"veto": func(p play) {
			p.start("r", all+`}]}`, each("all", "web", "n1")...)
			p.do(commands.VetoPublication{Reference: pkg("web", "2").Reference, Reason: "bad"})
			p.settle()
			p.reason("r", "n1", events.HoldVetoed)
			p.do(commands.LiftVeto{Reference: pkg("web", "2").Reference})
			p.settle()
			p.pending("n1")
		},
		"stale": func(p play) {
			p.start("r", all+`}]}`, each("all", "web", "n1", "n2")...)
			p.do(commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "3").Reference})
			p.settle()
			p.pending("n2")
			if b := p.reason("r", "n1", events.HoldStale); !strings.Contains(b.WaitsFor, "web@3") {
				p.Errorf("it waits for %q", b.WaitsFor)
			}
		},
		"right already": func(p play) {
			p.start("r", all+`,"concurrency":1}]}`, each("all", "web", "n1", "n2")...)
			p.do(commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "2").Reference})
			p.settle()
			p.pending("n2")
		},
		"right already, for many rollouts at once": func(p play) {
			for _, id := range []string{"r", "r2", "r3", "r4"} {
				p.start(id, all+`}]}`, each("all", "web", "n1")...)
			}
			p.settle()
			p.report("web", commands.OutcomeApplied, "n1")
			for _, id := range []string{"r", "r2", "r3", "r4"} {
				if _, finished := p.last(id).(events.RolloutFinished); !finished {
					p.Errorf("rollout %s is left at %+v", id, p.last(id))
				}
			}
		},
		"away: wait": func(p play) {
			p.Walk.SetAway("n1", noon.Add(-time.Hour))
			p.start("r", `{"tiers":[{"name":"a"},{"name":"b"}]}`, append(each("a", "web", "n1", "n2"), each("b", "web", "n3")...)...)
			p.settle()
			p.pending("n2")
			p.reason("r", "n1", events.HoldOffline)
			p.report("web", commands.OutcomeApplied, "n2")
			p.pending("n3")
			p.report("web", commands.OutcomeApplied, "n3")
			p.pending()
			p.Walk.SetAway("n1", time.Time{}) // case E25: it gets it, once
			p.settle()
			p.pending("n1")
			p.report("web", commands.OutcomeApplied, "n1")
			if _, finished := p.last("r").(events.RolloutFinished); !finished {
				p.Errorf("it ends with %+v", p.last("r"))
			}
		},
		"away: skip": func(p play) {
			p.Walk.SetAway("n1", noon)
			p.start("r", all+`,"offline":"skip"}]}`, each("all", "web", "n1", "n2")...)
			p.settle()
			p.report("web", commands.OutcomeApplied, "n2")
			p.finished("r", events.RolloutFinished{Done: 1, Skipped: 1})
		},
		"away: fail": func(p play) {
			p.Walk.SetAway("n1", noon)
			p.start("r", all+`,"offline":"fail"}]}`, each("all", "web", "n1", "n2")...)
			p.settle()
			if _, failed := p.last("r").(events.RolloutFailed); !failed {
				p.Errorf("it goes on with %+v", p.last("r"))
			}
		},
		"refresh": func(p play) {
			p.do(commands.Assign{Node: "n1", Module: "db", Reference: pkg("db", "1").Reference}, commands.Assign{Node: "n2", Module: "db", Reference: pkg("db", "2").Reference})
			step := func(node string) events.PlannedStep {
				return events.PlannedStep{
					Tier: "all", StepName: events.StepName{Node: node, Module: "web"}, Before: pkg("web", "1"), After: pkg("web", "1"), Refresh: true,
					WaitsFor: []events.WaitFor{{StepName: events.StepName{Node: node, Module: "db"}, Notify: true}},
				}
			}
			p.start("r", all+`}]}`, planned("all", "db", "n1"), step("n1"), planned("all", "db", "n2"), step("n2"))
			p.settle() // n2 is right already: nothing has changed, and web is not told anew
			p.pending("n1")
			p.report("db", commands.OutcomeApplied, "n1")
			p.pending("n1")
			p.ok(p.Restart()) // what was raised and not served survives
			p.report("web", commands.OutcomeApplied, "n1")
			p.finished("r", events.RolloutFinished{Done: 3, Skipped: 1})
		},
		"a refresh that failed is tried again": func(p play) {
			p.do(commands.Assign{Node: "n1", Module: "db", Reference: pkg("db", "1").Reference})
			web := events.PlannedStep{
				Tier: "all", StepName: events.StepName{Node: "n1", Module: "web"}, Before: pkg("web", "1"), After: pkg("web", "1"), Refresh: true,
				WaitsFor: []events.WaitFor{{StepName: events.StepName{Node: "n1", Module: "db"}, Notify: true}},
			}
			p.start("r", all+`,"retry":1}]}`, planned("all", "db", "n1"), web)
			p.settle()
			p.report("db", commands.OutcomeApplied, "n1")
			p.report("web", commands.OutcomeApplyFailed, "n1")
			p.pending("n1") // what it was told is owed yet
			p.report("web", commands.OutcomeApplied, "n1")
			p.finished("r", events.RolloutFinished{Done: 2})
		},
		"an end": func(p play) {
			step := events.PlannedStep{Tier: "all", StepName: events.StepName{Node: "n1", Module: "web"}, Before: pkg("web", "1")}
			p.start("r", all+`}]}`, step)
			p.settle()
			p.pending("n1")
			p.report("web", commands.OutcomeRemoved, "n1")
			p.finished("r", events.RolloutFinished{Done: 1})
		},
		"an end on a node that is retired": func(p play) {
			step := events.PlannedStep{Tier: "all", StepName: events.StepName{Node: "n1", Module: "web"}, Before: pkg("web", "1")}
			ends := 1
			p.plan("r", all+`}]}`, step)
			p.do(commands.RetireNode{Node: "n1", Confirm: &ends}, commands.StartRollout{ID: "r"})
			p.settle()
			p.pending()
			p.reason("r", "n1", walk.HoldRetired)
		},
		"what is refused again and again is said once": func(p play) {
			p.do(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "site", Requires: []string{"web"}}},
				commands.RecordPublication{Reference: pkg("site", "1").Reference, Module: "site"}, commands.Assign{Node: "n1", Module: "site", Reference: pkg("site", "1").Reference})
			p.start("r", all+`}]}`, events.PlannedStep{Tier: "all", StepName: events.StepName{Node: "n1", Module: "web"}, Before: pkg("web", "1")})
			for range 20 {
				p.wait(30 * time.Second)
			}
			p.reason("r", "n1", "still-required")
			if n := p.count(events.TypeRolloutBlocked); n != 1 || len(p.Refused) < 2 {
				p.Errorf("after %d refusals it is said %d times", len(p.Refused), n)
			}
			p.Refused = nil
		},
		"right already, under a semaphore": func(p play) {
			const guarded = all + `,"semaphores":["db:1"]}]}`
			back := planned("all", "web", "n1")
			back.Before, back.After = back.After, back.Before
			p.start("r", guarded, back)
			due, _ := p.Walk.Next(p.Now)
			p.start("s", guarded, each("all", "web", "n2")...)
			if others, _ := p.Walk.Next(p.Now); len(due) != 1 || len(others) != 0 {
				p.Fatalf("due are %+v, and besides %+v", due, others) // what stands may change before the first is decided
			}
			p.ok(p.Act(due[0]))
			p.settle()
			p.pending("n2")
		},
		"merges are released": func(p play) {
			p.do(commands.HoldMerge{Repository: "git", Branch: "main", Commit: "c1", Waiting: "not planned"})
			p.plan("r", all+`}]}`, each("all", "web", "n1")...)
			p.do(commands.TakeMerge{Repository: "git", Branch: "main", Commit: "c1", Rollout: "r"}, commands.StartRollout{ID: "r"})
			p.ok(p.Play())
			if p.count(events.TypeMergeReleased) != 1 {
				p.Error("the merge waits although its rollout has finished")
			}
		},
		"drain": func(p play) {
			p.start("r", all+`,"concurrency":1}]}`, each("all", "web", "n1", "n2")...)
			p.settle()
			p.Walk.Drain()
			p.report("web", commands.OutcomeApplied, "n1")
			p.pending()
			p.ok(p.Restart())
			p.settle()
			p.pending("n2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t)
			p.modules("web", "db")
			p.node("web", names(6)...)
			play(p)
			p.unrefused()
		})
	}
}

// TestPausedTimeDoesNotCount is case E05: a deadline of 10 s, and a pause of 60 s.
func TestPausedTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.modules("web")
	p.node("web", "n1")
	p.start("r", `{"tiers":[{"name":"all","timeout":"10s"}]}`, each("all", "web", "n1")...)
	p.settle()
	p.wait(5 * time.Second)
	p.do(commands.PauseRollout{ID: "r"})
	p.wait(time.Minute).pending("n1")
	p.do(commands.ResumeRollout{ID: "r"})
	p.wait(4 * time.Second).pending("n1")
	p.wait(time.Second).pending()
	p.unrefused()
}

// TestTimeOfWhatIsLeft gives a step that is under way when its rollout is aborted the time that its tier gives it, without the time it was paused.
func TestTimeOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"short": 30 * time.Second, "long": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t)
			p.modules("web")
			p.node("web", "n1")
			p.start("r", fmt.Sprintf(`{"tiers":[{"name":"all","timeout":%q}]}`, timeout), each("all", "web", "n1")...)
			p.settle()
			p.wait(10 * time.Second)
			p.do(commands.PauseRollout{ID: "r"})
			p.wait(time.Minute)
			p.do(commands.AbortRollout{ID: "r"})
			if b := p.reason("r", "n1", events.HoldPending); !b.Until.Equal(noon.Add(timeout + time.Minute)) {
				t.Errorf("it has time until %v", b.Until)
			}
			p.ok(p.Restart())
			p.wait(timeout - 10*time.Second - time.Second).pending("n1")
			p.wait(time.Second).pending()
			if end, ok := p.last("r").(events.RolloutStepEnded); !ok || end.Outcome != events.StepUnknown || end.By != events.SettledByDeadline {
				t.Errorf("it ends with %+v", p.last("r"))
			}
			p.unrefused()
		})
	}
}

// TestAbortStays is cases E01 and E03: with nothing there to abort it is refused, and once aborted it stays so under another engine.
func TestAbortStays(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.modules("web")
	p.node("web", "n1", "n2")
	before := len(p.Events)
	if a, err := p.Send("ann", commands.AbortRollout{ID: "r"}); err != nil || a.Status != es.StatusRejected || len(p.Events) != before {
		t.Errorf("with nothing running it is %+v, %v", a, err)
	}
	p.start("r", `{"tiers":[{"name":"all","concurrency":1}]}`, each("all", "web", "n1", "n2")...)
	p.settle()
	p.do(commands.AbortRollout{ID: "r"})
	p.ok(p.TakeOver())
	p.wait(time.Second)
	p.report("web", commands.OutcomeApplied, "n1")
	p.wait(24 * time.Hour).pending()
	if n := p.count(events.TypeRolloutStepBegun); n != 1 {
		t.Errorf("%d steps have begun", n)
	}
	p.unrefused()
}

// TestEndsSayWhatTheNodeSaid brings what a node hands on, and by which driver, to the end of its step, though it reports health before the engine
// looks.
func TestEndsSayWhatTheNodeSaid(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.modules("web")
	p.node("web", "n1", "n2")
	p.start("r", `{"tiers":[{"name":"all"}]}`, planned("all", "web", "n1"), planned("all", "web", "n2", "n1"))
	p.settle()
	by := &events.Driver{Name: "files", Version: "1.0.0", Configuration: "9f86"}
	outputs := map[string]string{"port": "80"}
	for _, said := range []commands.Observe{
		{Seen: events.Seen{Outputs: outputs}, Outcome: commands.OutcomeApplied}, {Outcome: commands.OutcomeHealthy},
	} {
		told := p.Told("n1", "web")
		said.Node, said.Module, said.Reference, said.Rollout, said.Source, said.Driver = "n1", "web", told.Reference, "r", told.Sequence, by
		_, err := p.Send("n1", said)
		p.ok(err)
	}
	p.settle()
	for _, e := range p.Events {
		if end, ok := e.Data.(events.RolloutStepEnded); ok && !(cmp.Equal(end.Outputs, outputs) && cmp.Equal(end.Driver, by)) {
			t.Errorf("it ends with %+v", end)
		}
	}
	want := []events.Handed{{StepName: events.StepName{Node: "n1", Module: "web"}, Values: outputs, Changed: []string{"port"}}}
	if diff := cmp.Diff(want, p.Told("n2", "web").Inputs); diff != "" {
		t.Errorf("n2 is handed (-want +got):\n%s", diff)
	}
	p.unrefused()
}

// TestHeldBack is case B16: the begin of a step that was held back comes when its rollout has finished.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.modules("web")
	p.node("web", "n1")
	p.start("r", `{"tiers":[{"name":"all"}]}`, each("all", "web", "n1")...)
	due, _ := p.Walk.Next(p.Now)
	if len(due) != 1 || due[0].Step.Node != "n1" {
		t.Fatalf("due is %+v", due)
	}
	p.ok(p.TakeOver())
	p.ok(p.Play())
	before := len(p.Events)
	a, err := p.Send("engine", due[0].Payload)
	if p.ok(err); a.Status != es.StatusFenced && a.Status != es.StatusRejected || len(p.Events) != before {
		t.Errorf("it is %+v", a)
	}
}

// TestFormerHolderIsFenced is the decision of case B19: what a former holder still asks for is refused, whatever it is.
func TestFormerHolderIsFenced(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.modules("web")
	p.node("web", "n1", "n2")
	p.start("r", `{"tiers":[{"name":"all","concurrency":1}]}`, each("all", "web", "n1", "n2")...)
	before := p.Walk.Lease()
	p.ok(p.TakeOver())
	if now := p.Walk.Lease(); now.Fence <= before.Fence || now.Holder == before.Holder || !p.World.Fenced(before.Fence) {
		t.Errorf("the lease was %+v and is %+v", before, now)
	}
	p.settle()
	p.pending("n1")
	p.unrefused()
}
