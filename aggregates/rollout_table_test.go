package aggregates_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/rollout"
	"catenary/commands"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
)

// TestRolloutTable holds the deciders to each row of the table: state, command and situation.
func TestRolloutTable(t *testing.T) {
	t.Parallel()
	known := situations()
	for _, row := range rollout.Table() {
		name := fmt.Sprintf("%s %s %s", row.State, row.Command, row.Situation)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := setting{}
			if row.Situation != rollout.Usual {
				var ok bool
				if set, ok = known[row.Command+": "+row.Situation]; !ok {
					t.Fatal("no such situation is made here")
				}
			}
			x := play(t, row, set)
			if got := x.outcome(); got != row.Outcome {
				t.Errorf("leads to %q, and the table says %q", got, row.Outcome)
			}
		})
	}
}

// setting changes what is usual.
type setting struct {
	// plan changes the plan before it is written down.
	plan func(*shape)
	// facts are more of what has happened, after all that leads to the state but what makes it paused or final.
	facts func(*scene)
	// bare leaves out what the command usually finds: that its step has begun and its node has reported.
	bare bool
	// command changes the command.
	command func(*scene)
}

// shape is a plan.
type shape struct {
	strategy events.Strategy
	steps    []events.PlannedStep
	head     events.PlanHead
	confirm  *int
}

// scene is one row on the stage.
type scene struct {
	*story
	shape   shape
	payload es.Payload
	options []estest.Option
}

func version(of string) *events.Version { return &events.Version{Reference: pkg("web", of)} }

func stepOf(node string) events.StepName { return events.StepName{Node: node, Module: "web"} }

// play brings a rollout r1 into the state of the row: it carries web from 1 to 2, in the tier first on n1 and in the tier second on n2.
func play(t *testing.T, row rollout.Row, set setting) *scene {
	t.Helper()
	x := &scene{story: given(t, also(nodes("n1", "n2", "n3"), modules("web", "api"), []es.KeyedEvent{
		published(pkg("web", "1"), "", "", "web"), published(pkg("web", "2"), "", "", "web"),
		assigned("n1", "web", "1"), assigned("n2", "web", "1"),
	})...)}
	x.and(queued("r0")...)
	x.shape = shape{
		strategy: events.Strategy{Tiers: []events.Tier{{Name: "first", Retry: 0}, {Name: "second", Approval: row.Situation == rollout.Usual}}},
		steps: []events.PlannedStep{
			{Tier: "first", StepName: stepOf("n1"), Before: version("1"), After: version("2")},
			{Tier: "second", StepName: stepOf("n2"), Before: version("1"), After: version("2")},
		},
		head: events.PlanHead{Targets: []events.Target{{Module: "web", Version: *version("2")}}},
	}
	if row.State == rollout.WaitingApproval {
		x.shape.strategy.Tiers[0].Approval = true
	}
	if set.plan != nil {
		set.plan(&x.shape)
	}
	x.bring(row, set)
	x.payload = x.usual(row)
	if set.command != nil {
		set.command(x)
	}
	return x
}

// whole gives the one part that is the whole plan.
func (s shape) whole(t *testing.T, id string) commands.PlanRollout {
	t.Helper()
	raw, digest, err := s.strategy.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	head := s.head
	head.Strategy, head.StrategyDigest = raw, digest
	sum, err := events.PlanDigest{}.With(s.steps...)
	if err != nil {
		t.Fatal(err)
	}
	return commands.PlanRollout{ID: id, Part: 1, Head: &head, Steps: s.steps, Count: len(s.steps), Digest: sum.String(), Confirm: s.confirm}
}

// happened gives the facts that a plan leaves.
func happened(p commands.PlanRollout, approval bool) []es.KeyedEvent {
	ref := commands.RolloutRef(p.ID)
	return []es.KeyedEvent{
		on(ref, events.RolloutPlanning{ID: p.ID, PlanHead: *p.Head}), on(ref, events.RolloutStepsPlanned{Part: 1, Steps: p.Steps}),
		on(ref, events.RolloutPlanned{Count: p.Count, Digest: p.Digest, Approval: approval}),
	}
}

// queued gives a rollout of api on n3 that is planned and has not started.
func queued(id string) []es.KeyedEvent {
	strategy := events.Raw(`{"tiers":[{"name":"all"}]}`)
	step := events.PlannedStep{Tier: "all", StepName: events.StepName{Node: "n3", Module: "api"}, After: &events.Version{Reference: pkg("api", "1")}}
	digest, err := events.PlanDigest{}.With(step)
	if err != nil {
		panic(err)
	}
	return happened(commands.PlanRollout{
		ID: id, Head: &events.PlanHead{Strategy: strategy, StrategyDigest: es.Digest(strategy)}, Steps: []events.PlannedStep{step}, Count: 1, Digest: digest.String(),
	}, false)
}

// bring lets happen what leads to the state.
func (x *scene) bring(row rollout.Row, set setting) {
	x.t.Helper()
	ref, state := commands.RolloutRef("r1"), row.State
	if state == rollout.Unknown {
		if set.facts != nil {
			set.facts(x)
		}
		return
	}
	facts := happened(x.shape.whole(x.t, "r1"), x.shape.strategy.Tiers[0].Approval)
	if state == rollout.Planning {
		facts = facts[:2]
	}
	x.and(facts...)
	if state != rollout.Planning && state != rollout.Planned && state != rollout.WaitingApproval {
		x.and(on(ref, events.RolloutStarted{}), on(ref, events.RolloutTierEntered{Tier: "first"}))
		if !set.bare {
			x.found(row.Command)
		}
	}
	if set.facts != nil {
		set.facts(x)
	}
	switch state {
	case rollout.Paused:
		x.and(on(ref, events.RolloutPaused{}))
	case rollout.Finished:
		x.and(on(ref, events.RolloutFinished{}))
	case rollout.Failed:
		x.and(on(ref, events.RolloutFailed{Tier: "first"}))
	case rollout.Aborted:
		x.and(on(ref, events.RolloutAborted{}))
	case rollout.Superseded:
		x.and(on(ref, events.RolloutSuperseded{By: "r0"}))
	case rollout.Unknown, rollout.Planning, rollout.Planned, rollout.WaitingApproval, rollout.Running:
	}
}

// found lets happen what a command usually finds.
func (x *scene) found(command string) {
	switch command {
	case "end-step":
		x.begun("n1", 1).reported(commands.OutcomeApplied)
	case "settle":
		x.begun("n1", 1)
	case "retry-step":
		x.begun("n1", 1).ended("n1", events.StepFailed, false)
	case "advance":
		x.begun("n1", 1).ended("n1", events.StepDone, false)
		if x.shape.strategy.Tiers[1].Approval {
			x.and(on(commands.RolloutRef("r1"), events.RolloutApproved{Tier: "second"}))
		}
	}
}

// begun lets a step begin.
func (x *scene) begun(node string, attempt int) *scene {
	told := events.Told{Node: node, Module: "web", Reference: pkg("web", "2"), Rollout: "r1"}
	tier := map[string]string{"n1": "first", "n2": "second", "n3": "first"}[node]
	x.and(on(commands.RolloutRef("r1"), events.RolloutStepBegun{Tier: tier, StepName: stepOf(node), Attempt: attempt}),
		on(commands.AssignmentRef(node, "web"), events.AssignmentAssigned{Told: told}))
	return x
}

// ended lets the first try of a step end.
func (x *scene) ended(node, outcome string, again bool) *scene {
	x.and(on(commands.RolloutRef("r1"), events.RolloutStepEnded{
		Tier: "first", StepName: stepOf(node), Attempt: 1, StepResult: events.StepResult{Outcome: outcome}, By: events.SettledByReport, Again: again,
	}))
	return x
}

// seen is what n1 says of what rollout r1 told it.
func seen() events.Seen {
	return events.Seen{Node: "n1", Module: "web", Reference: pkg("web", "2"), Rollout: "r1"}
}

func (x *scene) reported(outcome string) *scene { return x.says(seen(), outcome) }

// says lets a node report.
func (x *scene) says(s events.Seen, outcome string) *scene {
	facts := map[string]any{
		commands.OutcomeApplied: events.AssignmentApplied{Seen: s}, commands.OutcomeApplyFailed: events.AssignmentApplyFailed{Seen: s},
		commands.OutcomeHealthy: events.AssignmentHealthy{Seen: s}, commands.OutcomeUnhealthy: events.AssignmentUnhealthy{Seen: s},
	}
	x.and(on(commands.AssignmentRef(s.Node, s.Module), facts[outcome]))
	return x
}

// usual gives the command as it usually is.
func (x *scene) usual(row rollout.Row) es.Payload {
	step := stepOf("n1")
	switch row.Command {
	case "plan":
		p := x.shape.whole(x.t, "r1")
		if row.State == rollout.Planning {
			more := events.PlannedStep{Tier: "second", StepName: stepOf("n3"), After: version("2")}
			all := append(append([]events.PlannedStep{}, x.shape.steps...), more)
			digest, err := events.PlanDigest{}.With(all...)
			if err != nil {
				x.t.Fatal(err)
			}
			return commands.PlanRollout{ID: "r1", Part: 2, Steps: all[len(all)-1:], Count: len(all), Digest: digest.String()}
		}
		return p
	case "approve":
		return commands.ApproveRollout{ID: "r1"}
	case "start":
		return commands.StartRollout{ID: "r1"}
	case "advance":
		return commands.AdvanceRollout{ID: "r1"}
	case "begin-step":
		return commands.BeginStep{ID: "r1", StepName: step}
	case "end-step":
		return commands.EndStep{ID: "r1", StepName: step, Attempt: 1, StepResult: events.StepResult{Outcome: events.StepDone}}
	case "settle":
		return commands.SettleStep{ID: "r1", StepName: step, Outcome: events.StepDone, Reason: "looked at it"}
	case "retry-step":
		return commands.RetryStep{ID: "r1", StepName: step, Reason: "the disk is free again"}
	case "block":
		return commands.BlockRollout{ID: "r1", Holds: []events.Hold{{Reason: events.HoldOffline}}}
	case "pause":
		return commands.PauseRollout{ID: "r1"}
	case "resume":
		return commands.ResumeRollout{ID: "r1"}
	case "abort":
		return commands.AbortRollout{ID: "r1"}
	case "supersede":
		return commands.SupersedeRollout{ID: "r1", By: "r0"}
	}
	x.t.Fatalf("%s is no command", row.Command)
	return nil
}

// outcome sends the command and says what comes of it, in the words of the table.
func (x *scene) outcome() string {
	x.t.Helper()
	if err := x.payload.Validate(); err != nil {
		x.t.Fatal(err)
	}
	c := es.Command{ID: "c1", Ref: x.payload.Ref(), Verb: x.payload.Verb(), Data: x.payload, Received: x.now}
	for _, option := range x.options {
		option(&c)
	}
	facts, err := x.world.Decide(c)
	var r *es.Refusal
	switch {
	case errors.As(err, &r) && r.Status == es.StatusRejected:
		return "refused: " + r.Code
	case errors.As(err, &r):
		return string(r.Status) + ": " + r.Code
	case err != nil:
		x.t.Fatal(err)
	case len(facts) == 0:
		return "unchanged"
	}
	registry, names := events.Registry(), make([]string, len(facts))
	for i, f := range facts {
		stored, _, err := registry.Encode(f.Data)
		if err != nil {
			x.t.Fatal(err)
		}
		aggregate, rest, _ := strings.Cut(stored, ".")
		short, _, _ := strings.Cut(rest, ".")
		switch {
		case f.Ref == c.Ref:
			names[i] = short
		case f.Ref.Aggregate == events.AggregateRollout:
			names[i] = "other " + short
		default:
			names[i] = aggregate + "." + short
		}
	}
	x.and(facts...) // what is decided can be folded
	return strings.Join(names, ", ")
}

// TestRolloutTableIsWritten keeps the table in the architecture pages as it is in the package.
func TestRolloutTableIsWritten(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- table: made from aggregates/rollout -->\n", "<!-- end -->\n"
	page := filepath.FromSlash("../docs/architecture/rollouts.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	found, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no place for the table", page)
	}
	want := tableText()
	if found == want {
		return
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s differs from the table of aggregates/rollout: run go test ./aggregates -run TestRolloutTableIsWritten -update", page)
}

// tableText shows the table: what is usual as a matrix, the situations as a list.
func tableText() string {
	var b strings.Builder
	states := []rollout.Status{
		rollout.Unknown, rollout.Planning, rollout.Planned, rollout.WaitingApproval, rollout.Running, rollout.Paused, rollout.Finished,
	}
	b.WriteString("| command |")
	for _, s := range states {
		name := s.String()
		if s.Final() {
			name = "final"
		}
		fmt.Fprintf(&b, " %s |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(states)) + "\n")
	var list strings.Builder
	last := ""
	for _, r := range rollout.Table() {
		switch {
		case r.Situation != rollout.Usual:
			fmt.Fprintf(&list, "| `%s` | %s | %s | %s |\n", r.Command, r.State, r.Situation, r.Outcome)
		case r.State <= rollout.Finished:
			if r.Command != last {
				fmt.Fprintf(&b, "| `%s` |", r.Command)
				last = r.Command
			}
			fmt.Fprintf(&b, " %s |", r.Outcome)
			if r.State == rollout.Finished {
				b.WriteByte('\n')
			}
		}
	}
	b.WriteString("\n| command | state | situation | outcome |\n|---|---|---|---|\n" + list.String())
	return b.String()
}

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }
