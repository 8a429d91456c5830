package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/chain"
	"catenary/events"
	"catenary/rollout/plan"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func pkg(name, version string) events.Version {
	return events.Version{Reference: events.Reference{Package: &events.Package{Name: name, Version: version}}}
}

func name(node, module string) events.StepName { return events.StepName{Node: node, Module: module} }

// fleet is the fixture of the cases: shop and pay at r1 on six nodes in three tiers.
func fleet() plan.Facts {
	f := plan.Facts{
		Nodes: map[string]chain.Node{}, Told: map[events.StepName]events.Version{}, Published: map[string]chain.Published{}, Tried: map[plan.Change]int{},
		Modules: map[string]chain.Module{"shop": {Name: "shop", Repository: "git/shop", Requires: []string{"pay"}}, "pay": {Name: "pay"}},
	}
	for i, tier := range []string{"1", "2", "2", "3", "3", "3"} {
		n := fmt.Sprint("n", i+1)
		f.Nodes[n] = chain.Node{Node: n, ManagedBy: events.ManagedByAgent, Labels: map[string]string{"tier": tier}}
		f.Told[name(n, "shop")], f.Told[name(n, "pay")] = pkg("shop", "r1"), pkg("pay", "r1")
	}
	for _, m := range []string{"shop", "pay"} {
		for _, v := range []string{"r1", "r2", "r3", "r4"} {
			f.Published[m+"@"+v] = chain.Published{Reference: pkg(m, v).Reference, Module: m}
		}
	}
	return f
}

// byTier walks the fleet by its labels.
func byTier() events.Strategy {
	var s events.Strategy
	for _, tier := range []string{"1", "2", "3"} {
		s.Tiers = append(s.Tiers, events.Tier{Name: "tier " + tier, Selector: events.Selector{Labels: map[string]string{"tier": tier}}})
	}
	return s
}

func set(targets ...events.Target) plan.Request {
	return plan.Request{ID: "r", Strategy: byTier(), Targets: targets, Now: noon}
}

func target(module, version string) events.Target {
	return events.Target{Module: module, Version: pkg(module, version)}
}

// show gives steps in a line each.
func show(p plan.Plan) string {
	var lines []string
	for _, s := range p.Steps {
		before, after := "-", "-"
		if s.Before != nil {
			before = s.Before.String()
		}
		if s.After != nil {
			after = s.After.String()
		}
		line := fmt.Sprintf("%s: %s: %s > %s", s.Tier, s.StepName, before, after)
		for _, w := range s.WaitsFor {
			line += " after " + w.StepName.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func made(t *testing.T, f plan.Facts, r plan.Request) plan.Plan {
	t.Helper()
	p, err := plan.Make(f, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanChangesWhatStands(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.Told[name("n3", "shop")] = pkg("shop", "r2")
	delete(f.Told, name("n6", "shop"))
	p := made(t, f, set(target("shop", "r2")))
	const want = `tier 1: shop on n1: shop@r1 > shop@r2
tier 2: shop on n2: shop@r1 > shop@r2
tier 3: shop on n4: shop@r1 > shop@r2
tier 3: shop on n5: shop@r1 > shop@r2`
	if diff := cmp.Diff(want, show(p)); diff != "" || p.Right != 1 {
		t.Errorf("%d right; steps (-want +got):\n%s", p.Right, diff)
	}
	if diff := cmp.Diff([]plan.Tier{{Name: "tier 1", Steps: 1}, {Name: "tier 2", Steps: 1}, {Name: "tier 3", Steps: 2}}, p.Tiers); diff != "" {
		t.Errorf("tiers (-want +got):\n%s", diff)
	}
}

func TestPlanComesToNodesWhereNothingStands(t *testing.T) {
	t.Parallel()
	f := fleet()
	for _, n := range []string{"n2", "n3", "n4"} {
		delete(f.Told, name(n, "pay"))
	}
	n3 := f.Nodes["n3"]
	n3.ManagedBy = events.ManagedByExternal
	f.Nodes["n3"] = n3
	f.Nodes["other"] = chain.Node{Node: "other", ManagedBy: events.ManagedByAgent}
	for what, c := range map[string]struct {
		onto       []string
		everywhere bool
		want       string
		leftOut    []string
	}{
		"named":                            {onto: []string{"n4", "n3", "n1", "nowhere"}, want: "tier 3: pay on n4: - > pay@r1", leftOut: []string{plan.LeftExternal, plan.LeftUnknownNode}},
		"where a tier picks it, and named": {onto: []string{"n4"}, everywhere: true, want: "tier 2: pay on n2: - > pay@r1\ntier 3: pay on n4: - > pay@r1"},
	} {
		r := set(target("pay", "r1"))
		r.Onto, r.Everywhere = c.onto, c.everywhere
		p := made(t, f, r)
		var leftOut []string
		for _, l := range p.LeftOut {
			leftOut = append(leftOut, l.Reason)
		}
		if diff := cmp.Diff(c.want, show(p)) + cmp.Diff(c.leftOut, leftOut); diff != "" || p.Right != 3 {
			t.Errorf("%s: %d right; (-want +got):\n%s", what, p.Right, diff)
		}
	}
}

// TestNothingToChangeWritesNothing is the case of users who pay for runs that do nothing.
func TestNothingToChangeWritesNothing(t *testing.T) {
	t.Parallel()
	p := made(t, fleet(), set(target("shop", "r1")))
	parts, err := p.Commands(nil)
	if err != nil || len(p.Steps) > 0 || p.Right != 6 || len(parts) > 0 {
		t.Errorf("%d steps, %d right, %d commands, %v", len(p.Steps), p.Right, len(parts), err)
	}
}

func TestWhatIsLeftOutSaysWhy(t *testing.T) {
	t.Parallel()
	f := fleet()
	n := f.Nodes["n1"]
	n.ManagedBy = events.ManagedByExternal
	f.Nodes["n1"] = n
	f.Nodes["n2"] = chain.Node{Node: "n2", Retired: noon}
	delete(f.Nodes, "n3")
	f.Nodes["n4"] = chain.Node{Node: "n4", Labels: map[string]string{"tier": "9"}}
	f.Freezes = []chain.Freeze{
		{Name: "n5 rests", Selector: events.Selector{Nodes: []string{"n5"}}, Window: &events.Window{End: "2026-05-02T00:00:00Z"}},
		{Name: "over", Ended: noon}, {Name: "later", Window: &events.Window{Start: "2026-05-02T00:00:00Z"}},
	}
	p := made(t, f, set(target("shop", "r2")))
	if want := "tier 3: shop on n6: shop@r1 > shop@r2"; show(p) != want {
		t.Errorf("steps are\n%s", show(p))
	}
	got := map[string]string{}
	for _, l := range p.LeftOut {
		got[l.Node] = l.Reason + ": " + l.Why
		if l.Node == "n5" && !l.Until.Equal(noon.Add(12*time.Hour)) {
			t.Errorf("n5 is frozen until %s", l.Until)
		}
	}
	want := map[string]string{
		"n1": "node-external: somebody else manages the node: no agent acts on it", "n2": "node-retired: the node is retired",
		"n3": "unknown-node: the node is not registered", "n4": "no-tier: no tier of the strategy picks it", "n5": "frozen: frozen by n5 rests",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	vetoed := f.Published["shop@r2"]
	vetoed.Vetoed = &chain.Veto{Reason: "breaks logins"}
	f.Published["shop@r2"] = vetoed
	p = made(t, f, set(target("shop", "r2")))
	if last := p.LeftOut[len(p.LeftOut)-1]; len(p.Steps) > 0 || last.Reason != plan.LeftVetoed || last.Why != "shop@r2 is vetoed: breaks logins" {
		t.Errorf("vetoed: %+v", p.LeftOut)
	}
}

func TestMissingIsNamedBeforeAnythingMoves(t *testing.T) {
	t.Parallel()
	_, err := plan.Make(fleet(), set(target("shop", "r9")))
	var missing *plan.MissingError
	if !errors.As(err, &missing) || err.Error() != "not recorded as published: shop@r9 of shop, on 6 nodes" {
		t.Fatalf("gave %v", err)
	}
	r := set(target("shop", "r9"))
	r.AllowMissing = true
	if p := made(t, fleet(), r); len(p.Steps) != 6 || len(p.Missing) != 1 {
		t.Errorf("allowed: %d steps, missing %+v", len(p.Steps), p.Missing)
	}
}

func TestRequirementsMakeAnOrder(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.Modules["shop"] = chain.Module{Name: "shop", Requires: []string{"lib"}}
	f.Modules["lib"] = chain.Module{Name: "lib", Requires: []string{"pay"}}
	r := set(target("shop", "r2"), target("pay", "r2"))
	r.Strategy = events.Strategy{Tiers: []events.Tier{{Name: "all", Selector: events.Selector{Nodes: []string{"n1", "n2"}}}}}
	const want = `all: pay on n1: pay@r1 > pay@r2
all: shop on n1: shop@r1 > shop@r2 after pay on n1
all: pay on n2: pay@r1 > pay@r2
all: shop on n2: shop@r1 > shop@r2 after pay on n2`
	if got := show(made(t, f, r)); got != want {
		t.Errorf("steps are\n%s\nwant\n%s", got, want)
	}
}

// TestCircles covers case E32: what waits for itself is refused, and named.
func TestCircles(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.Modules["pay"] = chain.Module{Name: "pay", Requires: []string{"shop"}}
	_, err := plan.Make(f, set(target("shop", "r2"), target("pay", "r2")))
	var circle *plan.CircleError
	if !errors.As(err, &circle) || err.Error() != "steps of tier tier 1 wait for each other in a circle: pay on n1 after shop on n1 after pay on n1" {
		t.Errorf("modules: %v", err)
	}
	r := set(target("shop", "r2"))
	r.Strategy = events.Strategy{Tiers: []events.Tier{{Name: "all"}}, Edges: []events.Edge{
		{From: events.Place{Node: "n1"}, To: events.Place{Node: "n2"}}, {From: events.Place{Node: "n2"}, To: events.Place{Node: "n1"}},
	}}
	if _, err := plan.Make(fleet(), r); err == nil || err.Error() != "steps of tier all wait for each other in a circle: shop on n1 after shop on n2 after shop on n1" {
		t.Errorf("edges: %v", err)
	}
	r.Strategy = byTier()
	r.Strategy.Edges = []events.Edge{{From: events.Place{Node: "n4"}, To: events.Place{Node: "n1"}}}
	if _, err := plan.Make(fleet(), r); err == nil || !strings.HasPrefix(err.Error(), "edges[0]: shop on n1 in tier tier 1 can't wait for shop on n4") {
		t.Errorf("an edge against the tiers: %v", err)
	}
	r.Strategy.Tiers[0].After, r.Strategy.Tiers[2].After = []string{"tier 3"}, []string{"tier 1"}
	if _, err := plan.Make(fleet(), r); err == nil || !strings.Contains(err.Error(), "tier 1 after tier 3 after tier 1") {
		t.Errorf("tiers: %v", err)
	}
}

func TestNotifiedPlacesAreRefreshed(t *testing.T) {
	t.Parallel()
	r := set(target("pay", "r2"))
	r.Strategy = events.Strategy{
		Tiers: []events.Tier{{Name: "all", Selector: events.Selector{Nodes: []string{"n1"}}}},
		Edges: []events.Edge{{From: events.Place{Module: "pay"}, To: events.Place{Module: "shop"}, Notify: true}},
	}
	p := made(t, fleet(), r)
	const want = `all: pay on n1: pay@r1 > pay@r2
all: shop on n1: shop@r1 > shop@r1 after pay on n1`
	if got := show(p); got != want || !p.Steps[1].Refresh || !p.Steps[1].WaitsFor[0].Notify {
		t.Errorf("steps are\n%s", got)
	}
}

// TestRestore plans the fleet back to a moment: what was not there then ends, after what requires it, and what was comes back, before it.
func TestRestore(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.Told[name("n1", "shop")] = pkg("shop", "r2")
	delete(f.Told, name("n3", "shop"))
	delete(f.Told, name("n3", "pay"))
	then := map[events.StepName]events.Version{
		name("n1", "shop"): pkg("shop", "r1"), name("n1", "pay"): pkg("pay", "r1"), name("n3", "shop"): pkg("shop", "r1"), name("n3", "pay"): pkg("pay", "r1"),
	}
	r := plan.Request{ID: "r", Strategy: byTier(), Now: noon, Restore: &plan.Restore{At: noon.Add(-time.Hour), Told: then, Scope: func(n events.StepName) bool { return n.Node <= "n3" }}}
	const want = `tier 1: shop on n1: shop@r2 > shop@r1
tier 2: shop on n2: shop@r1 > -
tier 2: pay on n2: pay@r1 > - after shop on n2
tier 2: pay on n3: - > pay@r1
tier 2: shop on n3: - > shop@r1 after pay on n3`
	p := made(t, f, r)
	if got := show(p); got != want || p.Ends != 2 || p.Right != 1 {
		t.Errorf("%d end, %d right, steps are\n%s\nwant\n%s", p.Ends, p.Right, got, want)
	}
	if diff := cmp.Diff([]events.Target{target("pay", "r1"), target("shop", "r1")}, p.Head.Targets); diff != "" || !p.Head.Restores.Equal(noon.Add(-time.Hour)) {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
}

func TestRevert(t *testing.T) {
	t.Parallel()
	f := fleet()
	r1, r2 := pkg("shop", "r1"), pkg("shop", "r2")
	f.Told[name("n1", "shop")], f.Told[name("n2", "shop")] = r2, pkg("shop", "r4")
	p := made(t, f, plan.Request{ID: "back", Strategy: byTier(), Now: noon, Reverts: "r", Undo: []chain.Changed{
		{Node: "n1", Module: "shop", Before: &r1, After: &r2}, {Node: "n2", Module: "shop", Before: &r1, After: &r2}, {Node: "n3", Module: "shop", Before: &r1, After: &r2},
	}})
	if got := show(p); got != "tier 1: shop on n1: shop@r2 > shop@r1" || p.Right != 1 || p.Head.Reverts != "r" {
		t.Errorf("%d right, steps are\n%s", p.Right, got)
	}
	if len(p.LeftOut) != 1 || p.LeftOut[0].Reason != plan.LeftMovedOn || p.LeftOut[0].Node != "n2" {
		t.Errorf("left out: %+v", p.LeftOut)
	}
}

// TestTheWayBackIsStraight demands that nothing holds a way back but the time and the tries that a step has: no tier after tier, no gate, no bake time, no
// approval, no limit, and no node that fails.
func TestTheWayBackIsStraight(t *testing.T) {
	t.Parallel()
	r1, r2 := pkg("shop", "r1"), pkg("shop", "r2")
	told := func(node string) chain.Step {
		return chain.Step{Node: node, Module: "shop", Before: &r1, After: &r2, Sent: noon, Outcome: events.StepDone}
	}
	waits, refreshed := told("n3"), told("n4")
	waits.Sent, waits.Outcome, refreshed.Refresh = time.Time{}, "", true
	whole := chain.WholeRollout{Rollout: chain.Rollout{ID: "r", State: chain.RolloutFailed}, All: []chain.Step{told("n1"), told("n2"), waits, refreshed}}
	for i, timeout := range []string{"5m", "90s", ""} {
		whole.Tiers = append(whole.Tiers, chain.TierNodes{Tier: chain.Tier{Name: fmt.Sprint(i), Policy: chain.Policy{
			Timeout: timeout, Retry: i, Gate: events.GateHealthy, Bake: "1h", Approval: true, Delay: "1h", Concurrency: "1", PerMinute: 1, Semaphores: []string{"db:1"},
		}}})
	}
	undo, strategy, err := plan.Undone(whole)
	want := events.Strategy{Description: "the way back from rollout r", Tiers: []events.Tier{{Name: "back", FailureBudget: events.PercentOf(100), Timeout: "5m", Retry: 2}}}
	if err != nil || !reflect.DeepEqual(strategy, want) {
		t.Errorf("the way back is %+v, %v, want %+v", strategy, err, want)
	}
	if diff := cmp.Diff([]chain.Changed{{Node: "n1", Module: "shop", Before: &r1, After: &r2}, {Node: "n2", Module: "shop", Before: &r1, After: &r2}}, undo); diff != "" {
		t.Errorf("taken back (-want +got):\n%s", diff)
	}
	whole.All = []chain.Step{waits, refreshed}
	if _, _, err := plan.Undone(whole); !errors.Is(err, plan.ErrNothingChanged) {
		t.Errorf("where nothing was told: %v", err)
	}
}

// TestTakenBackOnce refuses a second way back. The engine MUST see that in the record: what the writer refuses it would try for ever.
func TestTakenBackOnce(t *testing.T) {
	t.Parallel()
	whole := chain.WholeRollout{All: []chain.Step{{Node: "n1", Module: "web", Sent: noon}}}
	if undo, _, err := plan.Undone(whole); err != nil || len(undo) != 1 {
		t.Errorf("taken back is %+v: %v", undo, err)
	}
	whole.RevertedBy = "back"
	if undo, _, err := plan.Undone(whole); !errors.Is(err, plan.ErrNothingChanged) || undo != nil {
		t.Errorf("taken back again is %+v: %v", undo, err)
	}
}

func TestOneCommitOfARepository(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.Modules["pay"] = chain.Module{Name: "pay", Repository: "git/shop"}
	at := func(t events.Target, commit string) events.Target { t.Commit = commit; return t }
	f.Commits = []chain.Commit{
		{Repository: "git/shop", Branch: "main", Commit: "c0", Merged: noon}, {Repository: "git/shop", Branch: "main", Commit: "c1", Merged: noon.Add(time.Hour)},
		{Repository: "git/shop", Branch: "main", Commit: "c2", Merged: noon.Add(2 * time.Hour)}, {Repository: "git/shop", Branch: "main", Commit: "c3", Merged: noon.Add(3 * time.Hour)},
		{Repository: "git/shop", Branch: "side", Commit: "s1", Merged: noon.Add(time.Hour)}, {Repository: "git/pay", Branch: "main", Commit: "p1", Merged: noon.Add(time.Hour)},
	}
	old := pkg("shop", "r1")
	old.Commit = "c0"
	f.Told[name("n1", "shop")] = old
	p := made(t, f, set(at(target("shop", "r2"), "c2"), at(target("pay", "r2"), "c2")))
	if diff := cmp.Diff([]events.FixedCommit{{Repository: "git/shop", Branch: "main", Commit: "c2", Merged: noon.Add(2 * time.Hour)}}, p.Head.Commits); diff != "" {
		t.Errorf("fixed (-want +got):\n%s", diff)
	}
	var since []string
	for _, c := range p.Since {
		since = append(since, c.Commit)
	}
	if strings.Join(since, " ") != "c2 c1" {
		t.Errorf("new since: %v", since)
	}
	if _, err := plan.Make(f, set(at(target("shop", "r2"), "c2"), at(target("pay", "r2"), "c1"))); err == nil || !strings.Contains(err.Error(), "c2 and c1 of git/shop") {
		t.Errorf("two commits: %v", err)
	}
}

// TestCommandsAreParts holds that parts are small, in order, and closed by what the writer will count.
func TestCommandsAreParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := fleet()
		r := set(target("shop", "r2"), target("pay", "r2"))
		r.Strategy = events.Strategy{Tiers: []events.Tier{{Name: "all"}}}
		for i := range rapid.IntRange(0, 350).Draw(t, "nodes") {
			n := strings.Repeat("x", rapid.IntRange(1, 200).Draw(t, "length")) + fmt.Sprint(i)
			f.Nodes[n] = chain.Node{Node: n}
			f.Told[name(n, "shop")], f.Told[name(n, "pay")] = pkg("shop", "r1"), pkg("pay", "r1")
		}
		p, err := plan.Make(f, r)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := p.Commands(nil)
		if err != nil {
			t.Fatal(err)
		}
		var digest events.PlanDigest
		count, seen := 0, map[events.StepName]bool{}
		for i, part := range parts {
			if err := part.Validate(); err != nil || part.Part != i+1 {
				t.Fatalf("part %d of %d is number %d: %v", i, len(parts), part.Part, err)
			}
			for _, s := range part.Steps {
				for _, w := range s.WaitsFor {
					if !seen[w.StepName] {
						t.Fatalf("%s stands before %s, for which it waits", s.StepName, w.StepName)
					}
				}
				seen[s.StepName] = true
			}
			if digest, err = digest.With(part.Steps...); err != nil {
				t.Fatal(err)
			}
			count += len(part.Steps)
		}
		if last := parts[len(parts)-1]; last.Count != count || last.Digest != digest.String() || count != len(p.Steps) || len(p.Steps) != len(f.Told) {
			t.Fatalf("%d steps in parts of %d, closed with %d", count, len(p.Steps), last.Count)
		}
	})
}

func TestTriesBeforeAreNotForgotten(t *testing.T) {
	t.Parallel()
	f := fleet()
	f.Tried[plan.Change{StepName: name("n1", "shop"), To: "shop@r3"}] = 2
	f.Tried[plan.Change{StepName: name("n2", "shop"), To: "shop@r2"}] = 2
	p := made(t, f, set(target("shop", "r3")))
	if p.Steps[0].Tried != 2 || p.Steps[1].Tried != 0 {
		t.Errorf("tried %d and %d times", p.Steps[0].Tried, p.Steps[1].Tried)
	}
}
