package aggregates_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func TestNode(t *testing.T) {
	t.Parallel()
	ref := commands.NodeRef("n1")
	confirm := func(n int) commands.RetireNode { return commands.RetireNode{Node: "n1", Reason: "sold", Confirm: &n} }
	retire := commands.RetireNode{Node: "n1", Reason: "sold"}
	retired := on(ref, events.NodeRetired{Reason: "sold"})
	sold := func(module string) es.KeyedEvent {
		return on(commands.AssignmentRef("n1", module), events.AssignmentEnded{Node: "n1", Module: module, Reason: "sold"})
	}

	t.Run("is managed by an agent unless said otherwise", func(t *testing.T) {
		t.Parallel()
		given(t).
			when(commands.RegisterNode{Node: "n1"}).then(on(ref, events.NodeRegistered{Node: "n1", ManagedBy: "agent"})).
			again().unchanged().
			when(commands.RegisterNode{Node: "n1", ManagedBy: "agent", Labels: map[string]string{}}).unchanged().
			when(commands.RegisterNode{Node: "n1", ManagedBy: "external"}).rejected("registered", "not managed by external").
			when(commands.RegisterNode{Node: "n1", Labels: map[string]string{"a": "b"}}).rejected("registered", "other labels", "relabel")
	})
	t.Run("gets other labels", func(t *testing.T) {
		t.Parallel()
		labels := map[string]string{"zone": "a"}
		given(t).
			when(commands.RelabelNode{Node: "n1", Labels: labels}).rejected("unknown-node", "n1").
			and(nodes("n1")...).
			when(commands.RelabelNode{Node: "n1"}).unchanged().
			when(commands.RelabelNode{Node: "n1", Labels: labels}).then(on(ref, events.NodeRelabelled{Labels: labels})).
			again().unchanged().
			when(commands.RelabelNode{Node: "n1"}).then(on(ref, events.NodeRelabelled{}))
	})
	t.Run("retires when nothing is on it", func(t *testing.T) {
		t.Parallel()
		given(t).
			when(retire).rejected("unknown-node").
			and(nodes("n1")...).
			when(confirm(1)).rejected("confirm-count", "ends nothing", "1 is confirmed").
			when(confirm(0)).then(retired).
			again().unchanged().
			when(commands.RelabelNode{Node: "n1"}).rejected("node-retired").
			when(commands.RegisterNode{Node: "n1", ManagedBy: "external"}).then(on(ref, events.NodeRegistered{Node: "n1", ManagedBy: "external"}))
	})
	t.Run("retires with the exact count only, and ends all on it", func(t *testing.T) {
		t.Parallel()
		given(t, also(nodes("n1", "n2"), modules("web", "db", "old", "next"))...).
			and(assigned("n1", "web", "r1"), assigned("n1", "db", "r1"), assigned("n1", "old", "r1"), ended("n1", "old"), assigned("n2", "web", "r1")).
			when(commands.Pend{Node: "n1", Module: "next"}).accepted().
			when(retire).rejected("confirm-count", "3 assignments: db, next, web", "count 3").
			when(confirm(2)).rejected("confirm-count", "2 is confirmed").
			when(confirm(4)).rejected("confirm-count").
			when(confirm(3)).then(sold("db"), sold("next"), sold("web"), retired).
			when(assign("n1", "web", "r1")).rejected("node-retired", "n1").
			when(unassign("n1", "web")).unchanged().
			when(unassign("n2", "web")).accepted()
	})
	t.Run("is not retired behind what is on it", func(t *testing.T) {
		t.Parallel()
		late := day.Add(time.Minute)
		given(t, also(nodes("n1"), modules("web"))...).
			when(assign("n1", "web", "r1"), effective(late)).accepted().
			when(confirm(1), effective(day)).rejected("effective-behind", "assignment n1.web", "2026-05-01T12:01:00Z").
			when(confirm(1), effective(late)).accepted()
	})
	t.Run("with more on it than one append takes", func(t *testing.T) {
		t.Parallel()
		l := newLedger(t)
		l.apply(day, nodes("n1")...)
		for i := range es.MaxAppendMessages {
			m := fmt.Sprintf("m%d", i)
			l.apply(day, modules(m)[0], assigned("n1", m, "r1"))
		}
		_, err := l.do(confirm(1000), day)
		var r *es.Refusal
		if !errors.As(err, &r) || r.Code != "too-many" || !strings.Contains(r.Message, "1001 events: the limit of one command is 1000") {
			t.Fatalf("got %v", err)
		}
		if got := l.status(unassign("n1", "m0"), day); got != es.StatusAccepted {
			t.Fatal(got)
		}
		if facts, err := l.do(confirm(999), day); err != nil || len(facts) != 1000 {
			t.Errorf("got %d events and %v", len(facts), err)
		}
	})
}
