package aggregates_test

import (
	"strings"
	"testing"
	"time"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func told(t events.Told) es.KeyedEvent {
	return on(commands.AssignmentRef(t.Node, t.Module), events.AssignmentAssigned{Told: t})
}

func TestAssign(t *testing.T) {
	t.Parallel()
	world := also(nodes("n1"), modules("web"))
	t.Run("needs a node and a module", func(t *testing.T) {
		t.Parallel()
		given(t).
			when(assign("n1", "web", "1")).rejected("unknown-node", "n1", "node register").
			and(nodes("n1")...).
			when(assign("n1", "web", "1")).rejected("unknown-module", "web", "module register").
			and(modules("web")...).and(on(commands.ModuleRef("web"), events.ModuleEnded{})).
			when(assign("n1", "web", "1")).rejected("module-ended", "web").
			and(modules("web")...).and(on(commands.NodeRef("n1"), events.NodeRetired{})).
			when(assign("n1", "web", "1")).rejected("node-retired", "n1")
	})
	t.Run("tells once", func(t *testing.T) {
		t.Parallel()
		withPort := assign("n1", "web", "1")
		withPort.Provisioning = events.Raw(`{"port": 80}`)
		withReason := withPort
		withReason.Reason = "once more"
		given(t, world...).
			when(assign("n1", "web", "1")).then(assigned("n1", "web", "1")).
			again().unchanged().
			when(assign("n1", "web", "2")).then(assigned("n1", "web", "2")).
			when(assign("n1", "web", "1")).then(assigned("n1", "web", "1")).
			when(withPort).then(told(events.Told{Node: "n1", Module: "web", Reference: pkg("web", "1"), Provisioning: events.Raw(`{"port": 80}`)})).
			again().unchanged().
			when(withReason).unchanged(). // why it is said again is nothing new
			when(assign("n1", "web", "1")).then(assigned("n1", "web", "1"))
	})
	t.Run("tells again after an end", func(t *testing.T) {
		t.Parallel()
		given(t, world...).
			when(assign("n1", "web", "1")).accepted().
			when(unassign("n1", "web")).then(ended("n1", "web")).
			again().unchanged().
			when(assign("n1", "web", "1")).then(assigned("n1", "web", "1"))
	})
	t.Run("keeps versions byte for byte", func(t *testing.T) {
		t.Parallel()
		s := given(t, world...)
		for _, v := range []string{"4651090", "1.20", "1.2", "0362525", "1e5", "true", "null", "012", "NaN"} {
			s.when(assign("n1", "web", v)).then(assigned("n1", "web", v))
		}
	})
	t.Run("keeps what a rollout put there", func(t *testing.T) {
		t.Parallel()
		given(t, world...).
			and(told(events.Told{Node: "n1", Module: "web", Reference: pkg("web", "1"), Rollout: "r1"})).
			when(assign("n1", "web", "1")).unchanged()
	})
}

func TestAssignFillsInWhatIsKnown(t *testing.T) {
	t.Parallel()
	r1 := pkg("web", "1")
	full := told(events.Told{Node: "n1", Module: "web", Reference: r1, Build: "b1", Commit: "c1"})
	by := func(change func(*commands.Assign)) commands.Assign {
		a := commands.Assign{Node: "n1", Module: "web"}
		change(&a)
		return a
	}
	base := also(nodes("n1"), modules("web"), []es.KeyedEvent{asked("b1"), succeeded("b1")})

	t.Run("by build", func(t *testing.T) {
		t.Parallel()
		build := by(func(a *commands.Assign) { a.Build = "b1" })
		given(t, base...).
			when(by(func(a *commands.Assign) { a.Build = "b9" })).rejected("unknown-build", "b9").
			when(build).rejected("not-published", "b1", "succeeded").
			when(commands.PublishBuild{ID: "b1", Reference: r1}).accepted().
			when(by(func(a *commands.Assign) { a.Build, a.Reference = "b1", pkg("web", "2") })).rejected("reference-mismatch", "web@1", "web@2").
			when(by(func(a *commands.Assign) { a.Build, a.Reference = "b1", artifact("sha256:1") })).rejected("reference-mismatch").
			when(by(func(a *commands.Assign) { a.Build, a.Commit = "b1", "c2" })).rejected("commit-mismatch", "c1", "c2").
			when(build).then(full).
			when(by(func(a *commands.Assign) { a.Build, a.Reference, a.Commit = "b1", r1, "c1" })).unchanged()
	})
	t.Run("by reference", func(t *testing.T) {
		t.Parallel()
		given(t, base...).
			when(commands.PublishBuild{ID: "b1", Reference: r1}).accepted().
			when(by(func(a *commands.Assign) { a.Reference, a.Commit = r1, "c2" })).rejected("commit-mismatch").
			when(by(func(a *commands.Assign) { a.Reference = r1 })).then(full)
	})
	t.Run("by what is not known", func(t *testing.T) {
		t.Parallel()
		given(t, base...).
			when(by(func(a *commands.Assign) { a.Reference, a.Commit = artifact("sha256:2"), "c9" })).
			then(told(events.Told{Node: "n1", Module: "web", Reference: artifact("sha256:2"), Commit: "c9"}))
	})
}

func TestUnassign(t *testing.T) {
	t.Parallel()
	given(t, also(nodes("n1"), modules("web"))...).
		when(unassign("n1", "web")).rejected("not-assigned", "never assigned").
		when(commands.Pend{Node: "n1", Module: "web"}).accepted().
		when(unassign("n1", "web")).then(ended("n1", "web")).
		again().unchanged()
}

func TestPend(t *testing.T) {
	t.Parallel()
	pend := commands.Pend{Node: "n1", Module: "web", Reference: pkg("web", "1")}
	waits := func(version string) es.KeyedEvent {
		return on(commands.AssignmentRef("n1", "web"), events.AssignmentPended{
			Told: events.Told{Node: "n1", Module: "web", Reference: pkg("web", version)}, State: "pending",
		})
	}
	given(t, also(nodes("n1"), modules("web"))...).
		when(commands.Pend{Node: "n2", Module: "web"}).rejected("unknown-node").
		when(commands.Pend{Node: "n1", Module: "api"}).rejected("unknown-module").
		when(pend).then(waits("1")).
		again().unchanged().
		when(commands.Pend{Node: "n1", Module: "web", Reference: pkg("web", "2")}).then(waits("2")).
		when(commands.Move{Node: "n1", Module: "web", To: "n2"}).rejected("not-standing").
		when(assign("n1", "web", "2")).then(assigned("n1", "web", "2")).
		when(pend).rejected("stands", "web", "n1").
		when(unassign("n1", "web")).accepted().
		when(pend).then(waits("1"))
}

func TestObserve(t *testing.T) {
	t.Parallel()
	ref := commands.AssignmentRef("n1", "web")
	seen := events.Seen{Node: "n1", Module: "web", Reference: pkg("web", "1"), Source: 7}
	report := func(outcome string) commands.Observe {
		o := commands.Observe{Seen: seen, Outcome: outcome}
		if outcome == commands.OutcomeDrifted {
			o.Drift = "web 0 runs"
		}
		return o
	}
	external := on(commands.NodeRef("n1"), events.NodeRegistered{Node: "n1", ManagedBy: events.ManagedByExternal})
	facts := map[string]events.Assignment{
		commands.OutcomeApplied:      events.AssignmentApplied{Seen: seen},
		commands.OutcomeHealthy:      events.AssignmentHealthy{Seen: seen},
		commands.OutcomeUnhealthy:    events.AssignmentUnhealthy{Seen: seen},
		commands.OutcomeRemoved:      events.AssignmentRemoved{Seen: seen},
		commands.OutcomeRemoveFailed: events.AssignmentRemoveFailed{Seen: seen},
		commands.OutcomeDrifted:      events.AssignmentDrifted{Seen: seen, Drift: "web 0 runs"},
	}
	for _, node := range []es.KeyedEvent{external, nodes("n1")[0]} {
		s := given(t, node).and(modules("web")...).
			when(report(commands.OutcomeApplied)).rejected("not-assigned").
			when(assign("n1", "web", "1")).accepted()
		for _, outcome := range []string{"applied", "healthy", "unhealthy", "healthy", "drifted", "remove-failed", "removed"} {
			s.when(report(outcome)).then(on(ref, facts[outcome])).
				again().unchanged()
		}
		// Each failed try is a fact.
		failed := on(ref, events.AssignmentApplyFailed{Seen: seen})
		s.when(report(commands.OutcomeApplyFailed)).then(failed).
			again().then(failed).
			when(report(commands.OutcomeHealthy)).accepted()
		// What was reported before the node was told anew is no answer to it.
		s.when(assign("n1", "web", "2")).accepted().
			when(report(commands.OutcomeHealthy)).accepted().
			again().unchanged().
			when(unassign("n1", "web")).accepted().
			when(report(commands.OutcomeRemoved)).accepted()
	}
}

func TestAssignmentRecordIsBounded(t *testing.T) {
	t.Parallel()
	large := assign("n1", "web", "1")
	large.Provisioning = events.Raw(`"` + strings.Repeat("x", 1_000) + `"`)
	s := givenWorld(t, aggregates.Config{MaxValueBytes: 2_000}, also(nodes("n1"), modules("web"))...).
		when(large).accepted()
	report := commands.Observe{Seen: events.Seen{Node: "n1", Module: "web", Reason: strings.Repeat("y", 400)}, Outcome: "unhealthy"}
	s.when(report).rejected("too-large", "assignment n1.web", "2000")
	report.Reason = "short"
	s.when(report).accepted()
	larger := large
	larger.Provisioning = events.Raw(`"` + strings.Repeat("x", 1_400) + `"`)
	s.when(larger).rejected("too-large").
		when(large).unchanged()
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	monday := day.AddDate(0, 0, -4)
	ref := commands.AssignmentRef("n1", "web")
	filled := func(fact any) es.KeyedEvent { return es.KeyedEvent{Ref: ref, Data: fact, Backfill: true} }
	base := also(nodes("n1"), modules("db"), []es.KeyedEvent{requiring("web", "db")})

	t.Run("adds to history and changes nothing that stands", func(t *testing.T) {
		t.Parallel()
		s := given(t, base...).
			when(assign("n1", "web", "2")).accepted().
			when(assign("n1", "web", "1"), backfill(monday)).
			then(filled(events.AssignmentAssigned{Told: events.Told{Node: "n1", Module: "web", Reference: pkg("web", "1")}})).
			when(assign("n1", "web", "2")).unchanged().
			when(unassign("n1", "web"), backfill(monday.Add(time.Hour))).
			then(filled(events.AssignmentEnded{Node: "n1", Module: "web"})).
			when(assign("n1", "web", "2")).unchanged()
		if got := s.world.Version(ref); got != 3 {
			t.Errorf("version %d, want 3: backfills count", got)
		}
	})
	t.Run("does not move the newest time", func(t *testing.T) {
		t.Parallel()
		s := given(t, base...).when(assign("n1", "web", "2"), effective(day)).accepted()
		s.when(assign("n1", "web", "1"), backfill(monday)).accepted().
			when(assign("n1", "web", "3"), effective(monday.Add(time.Hour))).rejected("effective-behind").
			when(assign("n1", "web", "3"), effective(day)).accepted()
	})
	t.Run("needs a time before the newest", func(t *testing.T) {
		t.Parallel()
		given(t, base...).
			when(assign("n1", "web", "1"), backfill(monday)).rejected("backfill-not-behind", "no facts yet").
			when(assign("n1", "web", "2"), effective(day)).accepted().
			when(assign("n1", "web", "1"), func(c *es.Command) { c.Backfill = true }).rejected("backfill-not-behind", "needs the time").
			when(assign("n1", "web", "1"), backfill(day)).rejected("backfill-not-behind", "2026-05-01T12:00:00Z").
			when(assign("n1", "web", "1"), backfill(day.Add(-time.Nanosecond))).accepted()
	})
	t.Run("is for assign and unassign alone", func(t *testing.T) {
		t.Parallel()
		given(t, base...).
			when(commands.RelabelNode{Node: "n1", Labels: map[string]string{"a": "b"}}, backfill(monday)).rejected("backfill-unsupported", "node relabel").
			when(commands.Move{Node: "n1", Module: "web", To: "n2"}, backfill(monday)).rejected("backfill-unsupported").
			when(commands.Observe{Seen: events.Seen{Node: "n1", Module: "web"}, Outcome: "applied"}, backfill(monday)).rejected("backfill-unsupported")
	})
	t.Run("tells of what is gone by now", func(t *testing.T) {
		t.Parallel()
		r1 := pkg("web", "1")
		given(t, also(nodes("n1"), modules("web"))...).
			and(published(r1, "b1", "c1", "web"), vetoed(r1, "x")).
			when(assign("n1", "web", "2")).accepted().
			when(unassign("n1", "web")).accepted().
			and(on(commands.NodeRef("n1"), events.NodeRetired{}), on(commands.ModuleRef("web"), events.ModuleEnded{})).
			when(assign("n1", "web", "1"), backfill(monday)).
			then(filled(events.AssignmentAssigned{Told: events.Told{Node: "n1", Module: "web", Reference: r1, Build: "b1", Commit: "c1"}})).
			when(commands.Assign{Node: "n1", Module: "web", Build: "b9"}, backfill(monday)).rejected("unknown-build")
	})
}
