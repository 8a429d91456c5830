package hammer_test

import (
	"testing"

	"catenary/commands"
	"catenary/es"
	"catenary/internal/hammer"
)

// Every command is well formed, about something that was set up, and never the same as another to its aggregate: so all are
// accepted.
func TestFleetAsksForSomethingNewEachTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodes, modules, aggregates int }{{1, 1, 1}, {7, 3, 21}, {0, 0, 1}} {
		f := hammer.NewFleet("f", c.nodes, c.modules)
		known := map[string]bool{}
		for _, p := range f.Setup() {
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			switch p := p.(type) {
			case commands.RegisterNode:
				known["node "+p.Node] = true
			case commands.RegisterModule:
				known["module "+p.Module] = true
			}
		}
		told := map[es.Ref]map[string]bool{}
		for range 5 * c.aggregates {
			p := f.Next().(commands.Assign)
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			if !known["node "+p.Node] || !known["module "+p.Module] {
				t.Fatalf("%+v was not set up", p)
			}
			if told[p.Ref()] == nil {
				told[p.Ref()] = map[string]bool{}
			}
			if version := p.Package.Version; told[p.Ref()][version] {
				t.Fatalf("%s is told %s twice", p.Ref(), version)
			}
			told[p.Ref()][p.Package.Version] = true
		}
		if len(told) != c.aggregates {
			t.Errorf("%d aggregates, want %d", len(told), c.aggregates)
		}
	}
}
