package stage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/rollout/stage"
	"catenary/rollout/walk"
)

// noon is a Friday.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func pkg(name, version string) *events.Version {
	return &events.Version{Reference: events.Reference{Package: &events.Package{Name: name, Version: version}}}
}

// play is a stage whose failures end the test.
type play struct {
	*testing.T
	*stage.Stage
}

func begin(t *testing.T) play {
	t.Helper()
	s, err := stage.New(noon, 0)
	if err != nil {
		t.Fatal(err)
	}
	return play{T: t, Stage: s}
}

func (p play) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p play) do(payloads ...es.Payload) {
	p.Helper()
	p.ok(p.Must(payloads...))
}

// node makes nodes known that run version 1 of a module.
func (p play) node(module string, names ...string) {
	p.Helper()
	for _, n := range names {
		p.do(
			commands.RegisterNode{Node: n, Labels: map[string]string{"node": n}, ManagedBy: events.ManagedByAgent},
			commands.Assign{Node: n, Module: module, Reference: pkg(module, "1").Reference},
		)
	}
}

func (p play) modules(names ...string) {
	p.Helper()
	for _, m := range names {
		p.do(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: m}})
		for _, v := range []string{"1", "2", "3"} {
			p.do(commands.RecordPublication{Reference: pkg(m, v).Reference, Module: m})
		}
	}
}

// names gives n1 to so many.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("n%d", i+1)
	}
	return list
}

// planned is a step of version 1 to version 2 of a module, which waits for others on other nodes.
func planned(tier, module, node string, after ...string) events.PlannedStep {
	s := events.PlannedStep{Tier: tier, StepName: events.StepName{Node: node, Module: module}, Before: pkg(module, "1"), After: pkg(module, "2")}
	for _, n := range after {
		s.WaitsFor = append(s.WaitsFor, events.WaitFor{StepName: events.StepName{Node: n, Module: module}})
	}
	return s
}

func each(tier, module string, nodes ...string) []events.PlannedStep {
	var list []events.PlannedStep
	for _, n := range nodes {
		list = append(list, planned(tier, module, n))
	}
	return list
}

// plan writes a plan down.
func (p play) plan(id, strategy string, steps ...events.PlannedStep) {
	p.Helper()
	list, err := hammer.Planned(id, events.Raw(strategy), steps...)
	p.ok(err)
	p.do(list...)
}

// start plans and starts a rollout.
func (p play) start(id, strategy string, steps ...events.PlannedStep) {
	p.Helper()
	p.plan(id, strategy, steps...)
	p.do(commands.StartRollout{ID: id})
}

// settle lets the engine look until nothing is due.
func (p play) settle() time.Time {
	p.Helper()
	again, err := p.Settle()
	p.ok(err)
	return again
}

// report lets nodes report about a module.
func (p play) report(module, outcome string, nodes ...string) {
	p.Helper()
	for _, n := range nodes {
		_, err := p.Report(n, module, outcome)
		p.ok(err)
	}
	p.settle()
}

// wait lets time go on, and the engine look.
func (p play) wait(d time.Duration) play {
	p.Helper()
	p.Now = p.Now.Add(d)
	p.settle()
	return p
}

// pending demands that just these steps are under way, as module on node.
func (p play) pending(want ...string) {
	p.Helper()
	var found []string
	for _, s := range p.Walk.Pending() {
		found = append(found, s.Node)
	}
	if strings.Join(found, " ") != strings.Join(want, " ") {
		p.Fatalf("under way are %v, want %v", found, want)
	}
}

// reason demands why a step, or with an empty node a rollout or tier as a whole, does not move.
func (p play) reason(id, node, want string) walk.Blocked {
	p.Helper()
	var found []walk.Blocked
	for _, b := range p.Walk.Blocked(id, p.Now) {
		if b.Node == node {
			if b.Reason == want {
				return b
			}
			found = append(found, b)
		}
	}
	p.Fatalf("%q of %s is held by %+v, want %s", node, id, found, want)
	return walk.Blocked{}
}

// last gives the newest event of a rollout.
func (p play) last(id string) any {
	for i := len(p.Events) - 1; i >= 0; i-- {
		if p.Events[i].Ref == commands.RolloutRef(id) {
			return p.Events[i].Data
		}
	}
	return nil
}

// finished demands that a rollout has finished just so.
func (p play) finished(id string, want events.RolloutFinished) {
	p.Helper()
	if found := p.last(id); found != want {
		p.Errorf("rollout %s ends with %+v, want %+v", id, found, want)
	}
}

// count counts events of a type.
func (p play) count(eventType string) (n int) {
	for _, e := range p.Events {
		if e.Type == eventType {
			n++
		}
	}
	return n
}

// unrefused demands that the writer has done all that the engine asked for.
func (p play) unrefused() {
	p.Helper()
	for _, r := range p.Refused {
		p.Errorf("%s %s was not done: %s %+v", r.Action.Payload.Ref(), r.Action.Payload.Verb(), r.Answer.Status, r.Answer.Error)
	}
}
