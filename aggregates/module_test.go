package aggregates_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func TestModule(t *testing.T) {
	t.Parallel()
	web := events.ModuleSpec{Module: "web", Kind: "service", Labels: map[string]string{"team": "blue", "tier": "1"}}
	red := web
	red.Labels = map[string]string{"team": "red"}
	ref := commands.ModuleRef("web")
	forget := commands.ForgetModule{Module: "web", Reason: "gone"}

	t.Run("is registered once", func(t *testing.T) {
		t.Parallel()
		given(t).
			when(commands.RegisterModule{ModuleSpec: web}).then(on(ref, events.ModuleRegistered{ModuleSpec: web})).
			again().unchanged().
			when(commands.RegisterModule{ModuleSpec: red}).rejected("registered", "module web", "module change")
	})
	t.Run("changes", func(t *testing.T) {
		t.Parallel()
		given(t).
			when(commands.ChangeModule{ModuleSpec: web}).rejected("unknown-module", "web").
			and(on(ref, events.ModuleRegistered{ModuleSpec: web})).
			when(commands.ChangeModule{ModuleSpec: web}).unchanged().
			when(commands.ChangeModule{ModuleSpec: red}).then(on(ref, events.ModuleChanged{ModuleSpec: red})).
			again().unchanged().
			when(commands.RegisterModule{ModuleSpec: red}).unchanged()
	})
	t.Run("is forgotten and registered again", func(t *testing.T) {
		t.Parallel()
		given(t).
			when(forget).rejected("unknown-module").
			and(on(ref, events.ModuleRegistered{ModuleSpec: web})).
			when(forget).then(on(ref, events.ModuleEnded{Reason: "gone"})).
			again().unchanged().
			when(commands.ChangeModule{ModuleSpec: web}).rejected("module-ended", "register it again").
			when(commands.RegisterModule{ModuleSpec: web}).then(on(ref, events.ModuleRegistered{ModuleSpec: web}))
	})
	t.Run("is not forgotten while it stands", func(t *testing.T) {
		t.Parallel()
		given(t, also(nodes("n1", "n2"), modules("web", "db"))...).
			when(assign("n1", "web", "r1")).accepted().
			when(assign("n2", "web", "r1")).accepted().
			when(assign("n2", "db", "r1")).accepted().
			when(forget).rejected("module-stands", "2 nodes: n1, n2", "unassign").
			when(unassign("n1", "web")).accepted().
			when(forget).rejected("module-stands", "1 node: n2").
			when(unassign("n2", "web")).accepted().
			when(forget).accepted()
	})
	t.Run("names ten nodes and counts the rest", func(t *testing.T) {
		t.Parallel()
		s := given(t, modules("web")...)
		for i := range 25 {
			n := fmt.Sprintf("n%02d", i)
			s.and(nodes(n)...).and(assigned(n, "web", "r1"))
		}
		s.when(forget).rejected("module-stands", "25 nodes: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09 and 15 more")
	})
	t.Run("that only waits is forgotten", func(t *testing.T) {
		t.Parallel()
		given(t, also(nodes("n1"), modules("web"))...).
			when(commands.Pend{Node: "n1", Module: "web"}).accepted().
			when(forget).accepted()
	})
	t.Run("that another one requires is forgotten", func(t *testing.T) {
		t.Parallel()
		given(t, requiring("web"), requiring("shop", "web")).when(forget).accepted()
	})
	t.Run("is refused as a whole when too large", func(t *testing.T) {
		t.Parallel()
		large := events.ModuleSpec{Module: "web"}
		for i := range 900 {
			large.Requires = append(large.Requires, fmt.Sprintf("%0100d", i))
		}
		given(t, modules("web")...).
			when(commands.ChangeModule{ModuleSpec: large}).rejected("too-large", "module web", "65536").
			when(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "web"}}).unchanged()
	})
}

func TestUnknownPayloadIsAFaultOfTheProgram(t *testing.T) {
	t.Parallel()
	s := given(t)
	for _, aggregate := range []string{"module", "node", "commit", "build", "publication", "assignment", "freeze", "lease", "writer", "rollout"} {
		_, err := s.world.Decide(es.Command{Ref: es.Ref{Aggregate: aggregate, Key: "x"}, Data: 7, Received: day})
		var r *es.Refusal
		if err == nil || errors.As(err, &r) {
			t.Errorf("%s: got %v, want an error that is no refusal", aggregate, err)
		}
	}
}
