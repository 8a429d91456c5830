package desk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/agent"
	"catenary/chain"
	"catenary/events"
)

func encoded[T any](t *testing.T, record T) []byte {
	t.Helper()
	text, err := chain.Encode(record)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func assignment(module, version string, told uint64) chain.Assignment {
	return chain.Assignment{Node: "n1", Module: module, Reference: events.Reference{Package: &events.Package{Name: module, Version: version}}, Told: told}
}

func index(t *testing.T) *Index {
	t.Helper()
	x := NewIndex()
	check(t, x.TakeNode(Value{2, encoded(t, chain.Node{Node: "n1", ManagedBy: events.ManagedByAgent})}))
	check(t, x.TakeModule(Value{3, encoded(t, chain.Module{Name: "web", Requires: []string{"db"}})}))
	check(t, x.TakeAssignment(Value{5, encoded(t, assignment("web", "1", 5))}))
	return x
}

func answer(t *testing.T, x *Index, known string) agent.Answer {
	t.Helper()
	a, err := x.Answer(agent.CheckIn{Node: "n1", Known: known})
	check(t, err)
	return a
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	x := index(t)
	first := answer(t, x, "")
	if !first.Known || first.ManagedBy != events.ManagedByAgent || len(first.Told) != 1 {
		t.Fatalf("answered %+v", first)
	}
	if i := first.Told[0]; i.Source != 5 || !i.Stands || i.Package.Version != "1" || cmp.Diff([]string{"db"}, i.Requires) != "" || len(i.Record) == 0 {
		t.Errorf("told %+v", i)
	}
	if again := answer(t, x, first.Edition); !again.Unchanged || len(again.Told) > 0 {
		t.Errorf("again %+v", again)
	}
	if unknown, err := x.Answer(agent.CheckIn{Node: "n2"}); err != nil || unknown.Known {
		t.Errorf("an unknown node: %+v, %v", unknown, err)
	}

	// A report changes the record, and tells nothing.
	reported := assignment("web", "1", 5)
	reported.Observed = &chain.Observed{Build: "b1"}
	check(t, x.TakeAssignment(Value{9, encoded(t, reported)}))
	if again := answer(t, x, first.Edition); !again.Unchanged {
		t.Errorf("after a report %+v", again)
	}
	// What comes late says nothing, and what comes from another bucket counts whatever its source.
	check(t, x.TakeAssignment(Value{4, encoded(t, assignment("web", "0", 4))}))
	if again := answer(t, x, first.Edition); !again.Unchanged {
		t.Errorf("after a value that came late %+v", again)
	}
	check(t, x.TakeModule(Value{4, encoded(t, chain.Module{Name: "web"})}))
	second := answer(t, x, first.Edition)
	if second.Unchanged || len(second.Told[0].Requires) != 0 {
		t.Errorf("after a change of the module %+v", second)
	}
	ended := assignment("web", "1", 12)
	ended.Ended = time.Unix(1, 0)
	check(t, x.TakeAssignment(Value{12, encoded(t, ended)}))
	if i := answer(t, x, second.Edition).Told[0]; i.Stands || !i.Ended || i.Source != 12 || len(i.Record) != 0 {
		t.Errorf("ended, it is told %+v", i)
	}
	pended := assignment("web", "2", 13)
	pended.State = events.StatePending
	check(t, x.TakeAssignment(Value{13, encoded(t, pended)}))
	if i := answer(t, x, "").Told[0]; i.Stands || i.Ended {
		t.Errorf("pended, it is told %+v", i)
	}
}

func TestAnswerInParts(t *testing.T) {
	t.Parallel()
	x := index(t)
	for i := range 30 {
		a := assignment(fmt.Sprintf("m%02d", i), "1", uint64(20+i))
		a.Provisioning = events.Raw(`"` + strings.Repeat("x", 60_000) + `"`)
		check(t, x.TakeAssignment(Value{uint64(20 + i), encoded(t, a)}))
	}
	c := agent.CheckIn{Node: "n1"}
	var told []string
	for parts := 0; ; parts++ {
		a, err := x.Answer(c)
		check(t, err)
		for _, i := range a.Told {
			told = append(told, i.Module)
		}
		if c.Cursor = a.Next; a.Next == "" {
			if len(told) != 31 || parts < 3 {
				t.Errorf("%d modules in %d parts: %v", len(told), parts+1, told)
			}
			return
		}
	}
}

func TestPassed(t *testing.T) {
	t.Parallel()
	x := index(t)
	if x.Passed(5) != nil {
		t.Error("it has come to 5 and says it has not")
	}
	passed := x.Passed(6)
	check(t, x.TakeAssignment(Value{7, encoded(t, assignment("web", "2", 7))}))
	select {
	case <-passed:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody is told that it has come further")
	}
	if x.Passed(6) != nil {
		t.Error("it has come to 7 and says it has not come to 6")
	}
}

// TestPresence walks through the states of a node, with a clock of its own.
func TestPresence(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	x := index(t)
	check(t, x.TakeNode(Value{3, encoded(t, chain.Node{Node: "n2", ManagedBy: events.ManagedByExternal})}))
	d := Desk{Index: x, Presence: NewPresence(func() time.Time { return now })}
	edition := answer(t, x, "").Edition
	hear := func(run string, converged bool, edition string) {
		d.Presence.Hear(agent.CheckIn{Node: "n1", Run: run, Every: 10 * time.Second, Status: agent.Status{Converged: converged, Edition: edition}})
	}
	is := func(what, state string, converged, rivals bool) {
		t.Helper()
		n, ok := d.Node("n1")
		if !ok || n.State != state || n.Converged != converged || n.Rivals != rivals {
			t.Errorf("%s: it is %+v", what, n)
		}
	}
	never := func(what string, never bool) {
		t.Helper()
		if n, _ := d.Node("n1"); n.Never != never {
			t.Errorf("%s: it is %+v", what, n)
		}
	}
	is("just begun", Unsure, false, false)
	now = now.Add(30 * time.Second)
	is("not heard for 30 s", Unsure, false, false)
	now = now.Add(time.Second)
	is("not heard for more", Off, false, false)
	never("not heard for more", true)
	hear("a", true, edition)
	is("heard", On, true, false)
	never("heard", false)
	hear("a", true, "another")
	is("it knows another edition", On, false, false)
	hear("a", false, edition)
	is("not all is so", On, false, false)
	now = now.Add(30 * time.Second)
	is("silent for three", On, false, false)
	now = now.Add(time.Second)
	is("silent for more", Off, false, false)
	hear("a", true, edition)
	is("back by itself", On, true, false)
	hear("b", true, edition)
	is("started again", On, true, false)
	now = now.Add(12 * time.Second)
	hear("b", true, edition)
	is("started again, and heard once more", On, true, false)

	// Another desk has heard nothing, but the record has.
	other := NewPresence(func() time.Time { return now })
	if n := (Desk{Index: x, Presence: other}).seen(x.describe("n1", x.nodes["n1"])); !n.Never {
		t.Errorf("nothing on record, it is %+v", n)
	}
	reported := assignment("web", "1", 5)
	reported.Observed = &chain.Observed{Build: "b1"}
	check(t, x.TakeAssignment(Value{9, encoded(t, reported)}))
	if n := (Desk{Index: x, Presence: other}).seen(x.describe("n1", x.nodes["n1"])); n.Never || n.State != Unsure {
		t.Errorf("with a report on record, it is %+v", n)
	}

	if n, ok := d.Node("n2"); !ok || n.State != External || n.Converged {
		t.Errorf("another's node is %+v", n)
	}
	if _, ok := d.Node("n3"); ok {
		t.Error("it knows a node that the chain does not know")
	}
	var names []string
	for cursor := ""; ; {
		found, next := d.Nodes(cursor, 1)
		for _, n := range found {
			names = append(names, n.Node)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"n1", "n2"}, names); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// TestRivals hears two agents of one node in turn.
func TestRivals(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	x := index(t)
	d := Desk{Index: x, Presence: NewPresence(func() time.Time { return now })}
	for i := range 4 {
		d.Presence.Hear(agent.CheckIn{Node: "n1", Run: []string{"a", "b"}[i%2], Every: 10 * time.Second})
		now = now.Add(5 * time.Second)
	}
	if n, _ := d.Node("n1"); !n.Rivals {
		t.Errorf("two agents are taken for one: %+v", n)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	x := NewIndex()
	for name, take := range map[string]func(Value) error{"assignment": x.TakeAssignment, "node": x.TakeNode, "module": x.TakeModule} {
		if err := take(Value{1, []byte(`{"node":1,"name":1}`)}); err == nil {
			t.Errorf("an %s that is none is taken", name)
		}
	}
}

// TestReplace: what another generation of a bucket lacks, because the record has lost it, is told to nobody any more.
func TestReplace(t *testing.T) {
	t.Parallel()
	x := index(t)
	before := answer(t, x, "")
	check(t, x.ReplaceAssignments([]Value{{4, encoded(t, assignment("web", "0", 4))}}))
	check(t, x.ReplaceModules(nil))
	after := answer(t, x, before.Edition)
	if len(after.Told) != 1 || after.Told[0].Source != 4 || len(after.Told[0].Requires) > 0 || !after.Known {
		t.Errorf("it tells %+v", after)
	}
	if x.Passed(5) == nil {
		t.Error("it says that it has come to what was lost")
	}
	check(t, x.ReplaceNodes(nil))
	if gone := answer(t, x, ""); gone.Known || len(gone.Told) != 1 {
		t.Errorf("of a node that was lost it says %+v", gone)
	}
	err := x.ReplaceAssignments([]Value{{5, []byte("{")}, {6, encoded(t, assignment("web", "2", 6))}})
	if i := answer(t, x, "").Told[0]; err == nil || i.Source != 6 {
		t.Errorf("over a value that can't be read it gives %v, and tells %+v", err, i)
	}
}
