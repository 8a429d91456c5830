package stage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/rollout/stage"
	"catenary/rollout/walk"
)

// TestAnotherEngineIsTheSame lets rollouts, nodes and people do what they may in any order, and the engine crash between any two of its
// commands. An engine that has read the same events asks for the same and gives the same reasons; the writer refuses nothing that the engine
// asks for; no limit is passed; and when all that stands in the way is gone, every rollout comes to its end.
func TestAnotherEngineIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		t.Repeat(map[string]func(*rapid.T){
			"":        c.check,
			"plan":    c.plan,
			"look":    c.look,
			"crash":   c.crash,
			"report":  c.report,
			"person":  c.person,
			"node":    c.node,
			"hinder":  c.hinder,
			"time":    c.time,
			"comply":  c.comply,
			"restart": func(t *rapid.T) { c.ok(c.Restart()); c.tellAway() },
		})
		c.clear()
	})
}

// chaos is a stage on which anything may happen.
type chaos struct {
	*rapid.T
	*stage.Stage
	nodes    []string
	modules  []string
	rollouts []string
	away     map[string]time.Time
	limits   map[string]int
}

func newChaos(t *rapid.T) *chaos {
	s, err := stage.New(noon, rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "window"))
	c := &chaos{T: t, Stage: s, nodes: names(5), modules: []string{"db", "web"}, away: map[string]time.Time{}, limits: map[string]int{"db": 1, "": 2}}
	c.ok(err)
	for _, m := range c.modules {
		c.ok(c.Must(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: m}}))
		for _, v := range []string{"1", "2", "3"} {
			c.ok(c.Must(commands.RecordPublication{Reference: pkg(m, v).Reference, Module: m}))
		}
	}
	for _, n := range c.nodes {
		c.ok(c.Must(commands.RegisterNode{Node: n, Labels: map[string]string{"node": n}, ManagedBy: events.ManagedByAgent}))
		for _, m := range c.modules {
			c.ok(c.Must(commands.Assign{Node: n, Module: m, Reference: pkg(m, "1").Reference}))
		}
	}
	return c
}

func (c *chaos) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// try sends what may be refused.
func (c *chaos) try(p es.Payload) {
	_, err := c.Send(stage.Person, p)
	c.ok(err)
}

func (c *chaos) tellAway() {
	for n, since := range c.away {
		c.Walk.SetAway(n, since)
	}
}

// standing gives what a place is at.
func (c *chaos) standing(n events.StepName) *events.Version {
	if s := c.Told(n.Node, n.Module); !s.Ended {
		return &events.Version{Reference: s.Reference}
	}
	return nil
}

func (c *chaos) plan(t *rapid.T) {
	if len(c.rollouts) == 4 {
		return
	}
	var strategy events.Strategy
	span := rapid.SampledFrom([]string{"", "10s", "1m"})
	for i := range rapid.IntRange(1, 3).Draw(t, "tiers") {
		tier := events.Tier{
			Name: fmt.Sprintf("t%d", i), Bake: span.Draw(t, "bake"), Delay: span.Draw(t, "delay"), Timeout: rapid.SampledFrom([]string{"30s", "5m"}).Draw(t, "timeout"),
			Gate: rapid.SampledFrom([]string{"", events.GateHealthy}).Draw(t, "gate"), Approval: rapid.Bool().Draw(t, "approval"),
			Offline: rapid.SampledFrom([]string{"", events.OfflineSkip, events.OfflineFail}).Draw(t, "offline"), Retry: rapid.IntRange(0, 2).Draw(t, "retry"),
		}
		if n := rapid.IntRange(0, 2).Draw(t, "concurrency"); n > 0 {
			tier.Concurrency = events.ShareOf(n)
		}
		if n := rapid.IntRange(0, 3).Draw(t, "budget"); n > 0 {
			tier.FailureBudget = events.ShareOf(n)
		}
		if rapid.Bool().Draw(t, "limited") {
			tier.Limit = &events.Limit{PerMinute: 6, Burst: 2}
		}
		tier.Semaphores = rapid.SampledFrom([][]string{nil, {"db:1"}, {":2", "db:1"}}).Draw(t, "semaphores")
		strategy.Tiers = append(strategy.Tiers, tier)
	}
	var steps []events.PlannedStep
	inTier := map[string][]events.StepName{}
	for _, tier := range strategy.Tiers {
		for _, n := range c.nodes {
			for _, m := range c.modules {
				name := events.StepName{Node: n, Module: m}
				taken := slices.ContainsFunc(steps, func(s events.PlannedStep) bool { return s.StepName == name })
				if taken || rapid.IntRange(0, 3).Draw(t, "left out") > 0 {
					continue
				}
				step := events.PlannedStep{Tier: tier.Name, StepName: name, Before: c.standing(name), Tried: rapid.IntRange(0, 1).Draw(t, "tried")}
				for _, w := range inTier[tier.Name] {
					if rapid.IntRange(0, 3).Draw(t, "waits") == 0 {
						step.WaitsFor = append(step.WaitsFor, events.WaitFor{StepName: w, Notify: rapid.Bool().Draw(t, "notify")})
					}
				}
				switch to := rapid.SampledFrom([]string{"1", "2", "3", "", "refresh"}).Draw(t, "to"); {
				case to == "refresh":
					step.After, step.Refresh = step.Before, true
				case to != "":
					step.After = pkg(m, to)
				}
				if step.After == nil && step.Before == nil || !step.Refresh && step.After != nil && step.Before != nil && step.After.Same(*step.Before) {
					continue
				}
				inTier[tier.Name] = append(inTier[tier.Name], name)
				steps = append(steps, step)
			}
		}
	}
	if len(steps) == 0 {
		return
	}
	raw, _, err := strategy.Canonical()
	c.ok(err)
	id := fmt.Sprintf("r%d", len(c.rollouts)+1)
	c.rollouts = append(c.rollouts, id)
	list, err := hammer.Planned(id, raw, steps...)
	c.ok(err)
	c.ok(c.Must(list...))
	c.try(commands.StartRollout{ID: id})
}

func (c *chaos) look(*rapid.T) {
	_, _, err := c.Look()
	c.ok(err)
}

// crash lets the engine die between two of its commands; another one begins with the events alone.
func (c *chaos) crash(t *rapid.T) {
	due, _ := c.Walk.Next(c.Now)
	for _, a := range due[:rapid.IntRange(0, len(due)).Draw(t, "done")] {
		c.ok(c.Act(a))
	}
	c.Walk.Forget()
	c.same()
	c.ok(c.Restart())
	c.tellAway()
}

func (c *chaos) report(t *rapid.T) {
	outcomes := []string{
		commands.OutcomeApplied, commands.OutcomeApplied, commands.OutcomeApplyFailed, commands.OutcomeHealthy, commands.OutcomeUnhealthy, commands.OutcomeRemoved, commands.OutcomeRemoveFailed,
	}
	_, err := c.Report(rapid.SampledFrom(c.nodes).Draw(t, "node"), rapid.SampledFrom(c.modules).Draw(t, "module"), rapid.SampledFrom(outcomes).Draw(t, "outcome"))
	c.ok(err)
}

func (c *chaos) comply(*rapid.T) {
	_, err := c.Comply()
	c.ok(err)
}

func (c *chaos) person(t *rapid.T) {
	if len(c.rollouts) == 0 {
		return
	}
	id := rapid.SampledFrom(c.rollouts).Draw(t, "rollout")
	n := events.StepName{Node: rapid.SampledFrom(c.nodes).Draw(t, "node"), Module: rapid.SampledFrom(c.modules).Draw(t, "module")}
	c.try(rapid.SampledFrom([]es.Payload{
		commands.ApproveRollout{ID: id}, commands.StartRollout{ID: id}, commands.PauseRollout{ID: id}, commands.ResumeRollout{ID: id},
		commands.AbortRollout{ID: id}, commands.RetryStep{ID: id, StepName: n, Reason: "x"},
		commands.SettleStep{ID: id, StepName: n, Outcome: rapid.SampledFrom([]string{events.StepDone, events.StepFailed, events.StepSkipped}).Draw(t, "outcome"), Reason: "x"},
	}).Draw(t, "command"))
}

func (c *chaos) node(t *rapid.T) {
	n := rapid.SampledFrom(c.nodes).Draw(t, "node")
	switch rapid.SampledFrom([]string{"away", "back", "by hand", "relabel"}).Draw(t, "what") {
	case "away":
		if c.away[n].IsZero() {
			c.away[n] = c.Now
		}
	case "back":
		c.away[n] = time.Time{}
	case "by hand":
		m := rapid.SampledFrom(c.modules).Draw(t, "module")
		c.try(commands.Assign{Node: n, Module: m, Reference: pkg(m, rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "version")).Reference})
	case "relabel":
		c.try(commands.RelabelNode{Node: n, Labels: map[string]string{"node": "n1"}})
	}
	c.tellAway()
}

func (c *chaos) hinder(t *rapid.T) {
	ref := pkg("web", "2").Reference
	end := c.Now.Add(20 * time.Second).Format(time.RFC3339)
	c.try(rapid.SampledFrom([]es.Payload{
		commands.DeclareFreeze{Name: "f", Selector: events.Selector{Labels: map[string]string{"node": "n1"}}}, commands.LiftFreeze{Name: "f"},
		commands.DeclareFreeze{Name: "g", Window: &events.Window{End: end}}, commands.LiftFreeze{Name: "g"},
		commands.VetoPublication{Reference: ref, Reason: "x"}, commands.LiftVeto{Reference: ref},
	}).Draw(t, "hindrance"))
}

func (c *chaos) time(t *rapid.T) {
	c.Now = c.Now.Add(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute}).Draw(t, "passes"))
}

// check demands what always has to be so.
func (c *chaos) check(*rapid.T) {
	for _, r := range c.Refused {
		c.Fatalf("%s %s was not done: %s %+v", r.Action.Payload.Ref(), r.Action.Payload.Verb(), r.Answer.Status, r.Answer.Error)
	}
	if len(c.Refused) > 0 {
		c.Refused = nil
		c.Walk.Forget()
	}
	c.same()
}

// same demands that another engine that has read the events asks for the same and gives the same reasons.
func (c *chaos) same() {
	c.Helper()
	one, err := c.Fold(len(c.Events))
	c.ok(err)
	for n, since := range c.away {
		one.SetAway(n, since)
	}
	for _, id := range c.rollouts {
		if diff := cmp.Diff(one.Blocked(id, c.Now), c.Walk.Blocked(id, c.Now)); diff != "" {
			c.Fatalf("reasons of %s (-another engine +this one):\n%s", id, diff)
		}
	}
	if c.Walk.InFlight() > 0 {
		c.Fatalf("%d commands are under way", c.Walk.InFlight())
	}
	due, again := one.Next(c.Now)
	mine, mineAgain := c.Walk.Next(c.Now)
	if diff := cmp.Diff(said(due), said(mine)); diff != "" {
		c.Fatalf("due (-another engine +this one):\n%s", diff)
	}
	if !mineAgain.IsZero() && (again.IsZero() || mineAgain.After(again)) && len(due) == 0 {
		c.Fatalf("another engine would look again at %v, this one at %v", again, mineAgain)
	}
	c.Walk.Forget() // what was asked for was not sent
}

func said(list []walk.Action) []string {
	var texts []string
	for _, a := range list {
		body, err := json.Marshal(a.Payload)
		texts = append(texts, fmt.Sprintf("%s %s %s %v", a.Payload.Ref(), a.Payload.Verb(), body, err))
	}
	slices.Sort(texts)
	return texts
}

// clear takes all out of the way that stands in it, and demands that every rollout comes to its end.
func (c *chaos) clear() {
	ref := pkg("web", "2").Reference
	for _, p := range []es.Payload{commands.LiftFreeze{Name: "f"}, commands.LiftFreeze{Name: "g"}, commands.LiftVeto{Reference: ref}} {
		c.try(p)
	}
	for _, n := range c.nodes {
		c.away[n] = time.Time{}
	}
	c.tellAway()
	const rounds = 500
	for range rounds {
		open := false
		for _, id := range c.rollouts {
			if !c.Walk.Knows(id) {
				continue
			}
			open = true
			c.try(commands.ApproveRollout{ID: id})
			c.try(commands.StartRollout{ID: id})
			c.try(commands.ResumeRollout{ID: id})
			for _, b := range c.Walk.Blocked(id, c.Now) {
				if b.Reason == events.HoldStale {
					c.try(commands.SettleStep{ID: id, StepName: events.StepName{Node: b.Node, Module: b.Module}, Outcome: events.StepSkipped, Reason: "it has gone on"})
				}
			}
		}
		if !open {
			return
		}
		c.ok(c.Play())
		for _, n := range c.nodes {
			for _, m := range c.modules {
				if t := c.Told(n, m); t.Rollout != "" && !t.Ended {
					_, err := c.Report(n, m, commands.OutcomeHealthy)
					c.ok(err)
				}
			}
		}
		c.Now = c.Now.Add(10 * time.Second)
	}
	var why []string
	for _, id := range c.rollouts {
		for _, b := range c.Walk.Blocked(id, c.Now) {
			why = append(why, fmt.Sprintf("%+v", b))
		}
	}
	c.Fatalf("not all come to their end:\n%s", strings.Join(why, "\n"))
}
