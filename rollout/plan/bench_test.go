package plan_test

import (
	"fmt"
	"testing"

	"catenary/chain"
	"catenary/events"
	"catenary/rollout/plan"
)

// large gives a fleet of so many nodes that run web 1.
func large(nodes int) plan.Facts {
	f := plan.Facts{
		Nodes: map[string]chain.Node{}, Told: map[events.StepName]events.Version{}, Published: map[string]chain.Published{},
		Modules: map[string]chain.Module{"web": {Name: "web"}},
	}
	for _, v := range []string{"1", "2"} {
		f.Published["web@"+v] = chain.Published{Reference: pkg("web", v).Reference}
	}
	for i := range nodes {
		n := fmt.Sprintf("node-%05d", i)
		f.Nodes[n] = chain.Node{Node: n, ManagedBy: events.ManagedByAgent, Labels: map[string]string{"tier": "a"}}
		f.Told[name(n, "web")] = pkg("web", "1")
	}
	return f
}

// afterThree lets every node wait for the first three.
func afterThree() events.Strategy {
	s := events.Strategy{Tiers: []events.Tier{{Name: "all", Selector: events.Selector{Labels: map[string]string{"tier": "a"}}}}}
	for i := range 3 {
		s.Edges = append(s.Edges, events.Edge{From: events.Place{Node: fmt.Sprintf("node-%05d", i)}, To: events.Place{Module: "web"}})
	}
	return s
}

// BenchmarkMake plans for 10,000 nodes, each of which waits for three others: 30,000 edges.
func BenchmarkMake(b *testing.B) {
	f := large(10_003)
	for i := range 3 { // what all wait for is another module, so that nothing waits for itself
		n := fmt.Sprintf("node-%05d", i)
		delete(f.Told, name(n, "web"))
		f.Told[name(n, "db")] = pkg("db", "1")
	}
	f.Modules["db"], f.Published["db@2"] = chain.Module{Name: "db"}, chain.Published{Reference: pkg("db", "2").Reference}
	r := plan.Request{ID: "r", Strategy: afterThree(), Targets: []events.Target{target("db", "2"), target("web", "2")}, Now: noon}
	for b.Loop() {
		p, err := plan.Make(f, r)
		if err != nil {
			b.Fatal(err)
		}
		edges := 0
		for _, s := range p.Steps {
			edges += len(s.WaitsFor)
		}
		if edges != 30_000 {
			b.Fatalf("%d edges", edges)
		}
	}
}

// BenchmarkNothingToChange plans for 4,000 nodes that are right already.
func BenchmarkNothingToChange(b *testing.B) {
	f := large(4000)
	r := plan.Request{ID: "r", Strategy: afterThree(), Targets: []events.Target{target("web", "1")}, Now: noon}
	for b.Loop() {
		p, err := plan.Make(f, r)
		if err != nil || len(p.Steps) > 0 {
			b.Fatal(len(p.Steps), err)
		}
	}
}
