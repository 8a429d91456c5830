package aggregates_test

import (
	"testing"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// shop is what the stories here begin with: web requires api and db, api requires db, and there are two nodes.
func shop() []es.KeyedEvent {
	return also(nodes("n1", "n2"), []es.KeyedEvent{requiring("db"), requiring("api", "db"), requiring("web", "api", "db"), requiring("jobs", "db")})
}

func TestAssigningPullsIn(t *testing.T) {
	t.Parallel()
	t.Run("what is required, transitively", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "web", "1")).
			then(assigned("n1", "web", "1"), assigned("n1", "api", "", "web"), assigned("n1", "db", "", "api", "web")).
			again().unchanged()
	})
	t.Run("at the newest publication that is not vetoed", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			and(published(pkg("db", "1"), "b1", "c1", "db"), published(pkg("db", "2"), "b2", "c2", "db"), published(pkg("db", "3"), "b3", "c3", "db"), vetoed(pkg("db", "3"), "x")).
			when(assign("n1", "jobs", "1")).
			then(assigned("n1", "jobs", "1"), told(events.Told{Node: "n1", Module: "db", Reference: pkg("db", "2"), Build: "b2", Commit: "c2", RequiredBy: []string{"jobs"}}))
	})
	t.Run("nothing that stands for its own sake", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "db", "7")).then(assigned("n1", "db", "7")).
			when(assign("n1", "jobs", "1")).then(assigned("n1", "jobs", "1"))
	})
	t.Run("nothing twice, but says who else requires it", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			and(published(pkg("db", "1"), "", "", "db")).
			when(assign("n1", "jobs", "1")).accepted().
			and(published(pkg("db", "2"), "", "", "db")).
			when(assign("n1", "api", "1")).then(assigned("n1", "api", "1"), assigned("n1", "db", "1", "api", "jobs")). // at what it runs already
			when(assign("n1", "db", "1")).then(assigned("n1", "db", "1")).                                             // now for its own sake
			again().unchanged().
			when(assign("n1", "web", "1")).then(assigned("n1", "web", "1")) // api and db stand for their own sake
	})
	t.Run("again what ended or only waits", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			and(assigned("n1", "db", "1"), ended("n1", "db")).
			when(assign("n1", "jobs", "1")).then(assigned("n1", "jobs", "1"), assigned("n1", "db", "", "jobs"))
		given(t, shop()...).
			when(commands.Pend{Node: "n1", Module: "db"}).accepted().
			when(assign("n1", "jobs", "1")).then(assigned("n1", "jobs", "1"), assigned("n1", "db", "", "jobs"))
	})
	t.Run("what a change added since", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).and(modules("cache")...).
			when(assign("n1", "jobs", "1")).accepted().
			when(commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: "jobs", Requires: []string{"db", "cache"}}}).accepted().
			when(assign("n1", "jobs", "1")).then(assigned("n1", "cache", "", "jobs")).
			again().unchanged()
	})
	t.Run("in circles", func(t *testing.T) {
		t.Parallel()
		given(t, also(nodes("n1"), []es.KeyedEvent{requiring("a", "b"), requiring("b", "c"), requiring("c", "a", "b")})...).
			when(assign("n1", "a", "1")).
			then(assigned("n1", "a", "1"), assigned("n1", "b", "", "a", "c"), assigned("n1", "c", "", "b")).
			again().unchanged().
			when(unassign("n1", "a")).then(ended("n1", "a"), ended("n1", "b"), ended("n1", "c"))
	})
	t.Run("only what is known", func(t *testing.T) {
		t.Parallel()
		given(t, also(nodes("n1"), []es.KeyedEvent{requiring("web", "api"), requiring("api", "db")})...).
			when(assign("n1", "web", "1")).rejected("unknown-module", "module db is not known, but api requires it").
			and(requiring("db"), on(commands.ModuleRef("db"), events.ModuleEnded{})).
			when(assign("n1", "web", "1")).rejected("module-ended", "db", "api requires it")
	})
}

func TestUnassigningEnds(t *testing.T) {
	t.Parallel()
	t.Run("what was only pulled in by it, transitively", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "web", "1")).accepted().
			when(unassign("n1", "web")).then(ended("n1", "web"), ended("n1", "api"), ended("n1", "db")).
			again().unchanged()
	})
	t.Run("nothing that others require too, but says so", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "web", "1")).accepted().
			when(assign("n1", "jobs", "1")).then(assigned("n1", "jobs", "1"), assigned("n1", "db", "", "api", "jobs", "web")).
			when(unassign("n1", "web")).then(ended("n1", "web"), ended("n1", "api"), assigned("n1", "db", "", "jobs")).
			when(unassign("n1", "jobs")).then(ended("n1", "jobs"), ended("n1", "db"))
	})
	t.Run("nothing that stands for its own sake", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "web", "1")).accepted().
			when(assign("n1", "api", "1")).accepted().
			when(unassign("n1", "web")).then(ended("n1", "web"), assigned("n1", "db", "", "api"))
	})
	t.Run("nothing on other nodes", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "jobs", "1")).accepted().
			when(assign("n2", "jobs", "1")).accepted().
			when(unassign("n1", "jobs")).then(ended("n1", "jobs"), ended("n1", "db"))
	})
	t.Run("not while another one requires it", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "web", "1")).accepted().
			when(assign("n1", "jobs", "1")).accepted().
			when(unassign("n1", "db")).rejected("still-required", "db", "n1", "api, jobs, web").
			when(unassign("n1", "api")).rejected("still-required", "web").
			when(assign("n1", "db", "1")).accepted().
			when(unassign("n1", "db")).rejected("still-required").
			when(unassign("n1", "jobs")).accepted().
			when(unassign("n1", "web")).then(ended("n1", "web"), ended("n1", "api")).
			when(unassign("n1", "db")).accepted()
	})
	t.Run("and lets go of what nobody requires since a change", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "jobs", "1")).accepted().
			when(commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: "jobs"}}).accepted().
			when(unassign("n1", "db")).then(ended("n1", "db"))
	})
	t.Run("what it pulled in and does not require any more since a change", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "jobs", "1")).accepted().
			when(commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: "jobs"}}).accepted().
			when(unassign("n1", "jobs")).then(ended("n1", "jobs"), ended("n1", "db"))
	})
	t.Run("not what another one requires since a change", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).and(modules("cron")...).
			when(assign("n1", "jobs", "1")).accepted().
			when(assign("n1", "cron", "1")).accepted().
			when(commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: "cron", Requires: []string{"db"}}}).accepted().
			when(unassign("n1", "jobs")).then(ended("n1", "jobs"), assigned("n1", "db", "", "cron"))
	})
	t.Run("with its reason on all of it", func(t *testing.T) {
		t.Parallel()
		end := func(m string) es.KeyedEvent {
			return on(commands.AssignmentRef("n1", m), events.AssignmentEnded{Node: "n1", Module: m, Reason: "gone"})
		}
		given(t, shop()...).
			when(assign("n1", "jobs", "1")).accepted().
			when(commands.Unassign{Node: "n1", Module: "jobs", Reason: "gone"}).then(end("jobs"), end("db"))
	})
}

func TestMove(t *testing.T) {
	t.Parallel()
	move := func(module string) commands.Move { return commands.Move{Node: "n1", Module: module, To: "n2"} }
	out := func(module string) es.KeyedEvent {
		return on(commands.AssignmentRef("n1", module), events.AssignmentMovedOut{Node: "n1", Module: module, To: "n2"})
	}
	in := func(t events.Told) es.KeyedEvent {
		return on(commands.AssignmentRef("n2", t.Module), events.AssignmentMovedIn{Told: t, From: "n1"})
	}

	t.Run("is refused where it makes no sense", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(move("db")).rejected("not-assigned").
			when(commands.Move{Node: "n1", Module: "db", To: "n1"}).rejected("same-node", "n1").
			when(assign("n1", "db", "1")).accepted().
			when(commands.Move{Node: "n1", Module: "db", To: "n9"}).rejected("unknown-node", "n9").
			when(assign("n2", "db", "1")).accepted().
			when(move("db")).rejected("target-stands", "n2").
			when(unassign("n1", "db")).accepted().
			when(move("db")).rejected("not-standing", "n1").
			and(assigned("n1", "db", "1"), ended("n2", "db"), on(commands.NodeRef("n2"), events.NodeRetired{})).
			when(move("db")).rejected("node-retired", "n2")
	})
	t.Run("takes it over as it stands", func(t *testing.T) {
		t.Parallel()
		all := events.Told{Node: "n1", Module: "db", Reference: artifact("sha256:1"), Build: "b1", Commit: "c1", Rollout: "r1", Provisioning: events.Raw(`{"a": 1}`)}
		there := all
		there.Node = "n2"
		given(t, shop()...).and(told(all)).
			when(move("db")).then(out("db"), in(there)).
			again().rejected("not-standing").
			when(commands.Move{Node: "n2", Module: "db", To: "n1"}).accepted().
			when(move("db")).accepted()
	})
	t.Run("pulls in there and ends here", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			and(published(pkg("db", "3"), "", "", "db")).
			when(assign("n1", "jobs", "1")).accepted().
			when(move("jobs")).
			then(out("jobs"), in(events.Told{Node: "n2", Module: "jobs", Reference: pkg("jobs", "1")}), assigned("n2", "db", "3", "jobs"), ended("n1", "db"))
	})
	t.Run("leaves what others require", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "jobs", "1")).accepted().
			when(assign("n1", "api", "1")).accepted().
			when(assign("n2", "db", "1")).accepted().
			when(move("jobs")).
			then(out("jobs"), in(events.Told{Node: "n2", Module: "jobs", Reference: pkg("jobs", "1")}), assigned("n1", "db", "", "api")).
			when(move("db")).rejected("target-stands")
	})
	t.Run("is refused for what stays required", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "jobs", "1")).accepted().
			when(move("db")).rejected("still-required", "jobs")
	})
	t.Run("is refused when what it requires is gone", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "db", "1")).accepted().
			when(commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: "db", Requires: []string{"disk"}}}).accepted().
			when(move("db")).rejected("unknown-module", "disk", "db requires it")
	})
	t.Run("of what was pulled in once stands for its own sake", func(t *testing.T) {
		t.Parallel()
		given(t, shop()...).
			when(assign("n1", "jobs", "1")).accepted().
			when(commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: "jobs"}}).accepted().
			when(move("db")).then(out("db"), in(events.Told{Node: "n2", Module: "db"}))
	})
	t.Run("is not done behind what is known of the target", func(t *testing.T) {
		t.Parallel()
		late := day.Add(2 * time.Minute)
		given(t, shop()...).
			when(assign("n1", "db", "1")).accepted().
			when(assign("n2", "db", "1"), effective(late)).accepted().
			when(unassign("n2", "db"), effective(late)).accepted().
			when(move("db"), effective(day.Add(time.Minute))).rejected("effective-behind", "assignment n2.db", "2026-05-01T12:02:00Z").
			when(move("db"), effective(late)).accepted()
	})
}
