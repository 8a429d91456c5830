package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/rollout/plan"
)

// fleet makes a module with three versions, and nodes that are told to run the first.
func (c caller) fleet(module string, nodes ...string) {
	c.t.Helper()
	c.module(module)
	for _, v := range []string{"1", "2", "3"} {
		c.ok("record", "publication", module+"@"+v, "--module", module)
	}
	for _, n := range nodes {
		c.node(n)
		c.ok("assign", n, module, "--package", module+"@1")
	}
}

// file writes a file for one test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRollouts has a chain of its own: freezes of other tests would hold what is planned here.
func TestRollouts(t *testing.T) {
	t.Parallel()
	u := started(t, "--store", t.TempDir(), "--durability", "interval", "--no-audit", "--no-engine")
	for name, test := range map[string]func(*testing.T, caller){
		"by hand": rolloutByHand, "back to a moment": planBackToAMoment, "from a commit": planFromACommit, "refused": plansThatAreRefused,
		"completed": completeRollouts, "steered": rolloutSteered,
	} {
		t.Run(name, func(t *testing.T) { test(t, caller{t: t, url: u.ready.NATS}) })
	}
	if code := u.stop(); code != exitOK {
		t.Errorf("interrupted, it ends with %d:\n%s", code, u.stderr.String())
	}
}

const twoTiers = `tiers:
  - name: first
    selector: {nodes: [ra]}
  - name: rest
    selector: {nodes: [rb, rc]}
    approval: true
`

// rolloutByHand plans, looks, starts, and walks by hand where the engine would: the commands that need none.
func rolloutByHand(t *testing.T, c caller) {
	c.fleet("roll", "ra", "rb", "rc")
	strategy := file(t, "two.yaml", twoTiers)
	c.ok("strategy", "declare", "two", strategy)
	if found := read[chain.Strategy](c, "get", "strategy", "two"); string(found.Strategy) != strings.TrimSpace(c.ok("strategy", "check", strategy).out) {
		t.Errorf("stored is %s", found.Strategy)
	}
	c.ok("track", "declare", "rolls", "--module", "roll", "--strategy", "two", "--on", "manual")
	if found := read[chain.Track](c, "get", "track", "rolls"); found.Strategy != "two" {
		t.Errorf("the track is %+v", found)
	}
	if found := read[plan.Plan](c, "rollout", "plan", "--set", "roll=roll@2", "--track", "rolls", "--dry-run"); found.Head.Track != "rolls" || found.Head.StrategyName != "two" {
		t.Errorf("for the track it is planned as %+v", found.Head)
	}

	// A plan that is only looked at, and one that changes nothing, leave nothing behind.
	planned := read[plan.Plan](c, "rollout", "plan", "--set", "roll=roll@2", "--strategy", "two", "--as", "by hand", "--dry-run")
	if len(planned.Steps) != 3 || planned.Steps[0].Node != "ra" {
		t.Errorf("planned is %+v", planned)
	}
	if found := c.ok("rollout", "plan", "--set", "roll=roll@1", "--strategy", "two", "--as", "by hand"); !strings.Contains(found.out, "nothing to change") {
		t.Errorf("with nothing to change it says %s", found.out)
	}
	c.must(exitNotFound, "rollout", "show", "by hand")

	tree := c.ok("rollout", "plan", "--set", "roll=roll@2", "--strategy", "two", "--as", "by hand", "--reason", "try it")
	const want = `rollout by hand
  tier first: 1 step
    ra roll: roll@1 → roll@2
  tier rest: 2 steps
    rb roll: roll@1 → roll@2
    rc roll: roll@1 → roll@2
  right already: 0
`
	if diff := cmp.Diff(want, tree.out); diff != "" || !strings.Contains(tree.err, "catenary rollout start 'by hand'") {
		t.Errorf("the plan (-want +found):\n%s%s", diff, tree.err)
	}
	if found := c.ok("rollout", "why", "by hand"); !strings.Contains(found.out, "somebody to start it") {
		t.Errorf("why is %s", found.out)
	}
	c.ok("rollout", "start", "by hand")
	begin := func(node string) []string {
		return []string{"send", "rollout", "begin-step", "--data", `{"id":"by hand","node":"` + node + `","module":"roll"}`}
	}
	c.ok(begin("ra")...)
	c.must(exitRefused, begin("rb")...)
	if found := read[chain.Assignment](c, "get", "assignment", "ra", "roll"); found.Rollout != "by hand" || found.Package.Version != "2" {
		t.Errorf("ra is told %+v", found)
	}
	shown := read[chain.WholeRollout](c, "rollout", "show", "by hand")
	if shown.State != chain.RolloutRunning || shown.Steps[0].State != "pending" || shown.Tiers[0].Counts.Pending != 1 {
		t.Errorf("it is shown as %+v", shown)
	}
	if found := c.ok("rollout", "why", "by hand"); !strings.Contains(found.out, "pending") || !strings.Contains(found.out, "tier rest to be entered") {
		t.Errorf("why is\n%s", found.out)
	}
	c.ok("rollout", "settle", "by hand", "ra", "roll", "--outcome", "done", "--reason", "looked at it")
	c.must(exitRefused, begin("rb")...)
	c.ok("rollout", "approve", "by hand")
	if again := read[es.Answer](c, "rollout", "approve", "by hand"); again.Status != es.StatusUnchanged {
		t.Errorf("approved twice it answers %+v", again)
	}
	c.ok("send", "rollout", "advance", "--data", `{"id":"by hand"}`)
	c.ok("rollout", "pause", "by hand")
	c.must(exitRefused, begin("rb")...)
	c.ok("rollout", "resume", "by hand")
	c.ok(begin("rb")...)
	if found := c.ok("rollout", "ls"); !strings.Contains(found.out, "by hand") || !strings.Contains(found.out, "running") {
		t.Errorf("the list is\n%s", found.out)
	}
	if found := c.ok("rollout", "show", "by hand"); !strings.Contains(found.out, "done (person): looked at it") || !strings.Contains(found.out, "rc roll: roll@1 → roll@2: waiting") {
		t.Errorf("it is shown as\n%s", found.out)
	}

	// It goes back, as a rollout of its own; what it carried stays away until somebody lifts that.
	c.must(exitUsage, "rollout", "rollback", "by hand")
	back := read[plan.Plan](c, "rollout", "rollback", "by hand", "--reason", "logins break", "--as", "way back")
	if len(back.Steps) != 2 || back.Steps[0].After.String() != "roll@1" {
		t.Errorf("the way back is %+v", back)
	}
	if found := read[chain.Rollout](c, "get", "rollout", "by hand"); found.State != chain.RolloutAborted || found.RevertedBy != "way back" {
		t.Errorf("the original is %+v", found)
	}
	// What is over says of nothing that its turn comes.
	if found := c.ok("rollout", "why", "by hand", "-o", "json"); !strings.Contains(found.out, `"node":"rb","module":"roll","reason":"pending"`) ||
		!strings.Contains(found.out, `"node":"rc","module":"roll","reason":"not-begun"`) {
		t.Errorf("why is\n%s", found.out)
	}
	if found := c.ok("rollout", "show", "by hand"); !strings.Contains(found.out, "rc roll: roll@1 → roll@2: not begun") {
		t.Errorf("it is shown as\n%s", found.out)
	}
	if found := read[plan.Plan](c, "rollout", "plan", "--set", "roll=roll@2", "--strategy", "two", "--dry-run"); len(found.Steps) > 0 || found.LeftOut[0].Reason != plan.LeftVetoed {
		t.Errorf("planned again it is %+v", found)
	}
	c.ok("rollout", "abort", "way back")
	c.must(exitRefused, "rollout", "abort", "way back")
	c.ok("track", "end", "rolls")
	c.ok("strategy", "end", "two")
	c.must(exitUsage, "rollout", "plan", "--set", "roll=roll@3", "--strategy", "two")
}

// rolloutSteered has a step tried again, and puts rollouts in the place of others: of one that is under way, and of one that waits to be started.
func rolloutSteered(t *testing.T, c caller) {
	c.fleet("steer", "sa", "sb")
	strategy := file(t, "all.yaml", "tiers:\n  - name: all\n    failure-budget: 2\n    approval: true\n")
	plan := func(id, version string, more ...string) {
		t.Helper()
		c.ok(append([]string{"rollout", "plan", "--set", "steer=steer@" + version, "--strategy", strategy, "--as", id}, more...)...)
	}
	state := func(id string) chain.Rollout { t.Helper(); return read[chain.Rollout](c, "get", "rollout", id) }
	plan("under way", "2")
	c.must(exitRefused, "rollout", "start", "under way") // its tier waits for somebody to approve it
	c.ok("rollout", "approve", "under way")
	c.ok("rollout", "start", "under way")
	c.ok("send", "rollout", "begin-step", "--data", `{"id":"under way","node":"sa","module":"steer"}`)
	c.must(exitRefused, "rollout", "retry-step", "under way", "sa", "steer", "--reason", "too early")
	c.ok("rollout", "settle", "under way", "sa", "steer", "--outcome", "failed", "--reason", "the disk is full")
	c.ok("rollout", "retry-step", "under way", "sa", "steer", "--reason", "there is room now")
	if found := c.ok("rollout", "show", "under way"); !strings.Contains(found.out, "sa steer: steer@1 → steer@2: waiting") {
		t.Errorf("with a step to be tried again it is shown as\n%s", found.out)
	}
	c.ok("send", "rollout", "begin-step", "--data", `{"id":"under way","node":"sa","module":"steer"}`)
	if found := c.ok("rollout", "show", "under way"); !strings.Contains(found.out, "pending since ") {
		t.Errorf("under way it is shown as\n%s", found.out)
	}

	c.must(exitRefused, "rollout", "supersede", "under way", "--by", "nobody")
	plan("queued", "3", "--supersedes", "under way")
	if found := state("under way"); found.State != chain.RolloutSuperseded || found.SupersededBy != "queued" {
		t.Errorf("what it replaces is %+v", found)
	}
	c.must(exitRefused, "rollout", "resume", "under way")
	plan("last", "3")
	c.ok("rollout", "supersede", "queued", "--by", "last", "--reason", "one is enough")
	if found := state("queued"); found.State != chain.RolloutSuperseded || found.SupersededBy != "last" {
		t.Errorf("what it replaces is %+v", found)
	}
	c.must(exitRefused, "rollout", "start", "queued")
	c.must(exitRefused, "rollout", "supersede", "queued", "--by", "last")
	// What was begun is pending still, and can be settled.
	c.ok("rollout", "settle", "under way", "sa", "steer", "--outcome", "done", "--reason", "looked at it")
	c.ok("rollout", "abort", "last")
}

// planBackToAMoment plans nodes back to what they were told once; what was not there then ends, with the count confirmed.
func planBackToAMoment(t *testing.T, c caller) {
	c.module("past")
	c.node("pasta")
	c.node("pastb")
	for _, v := range []string{"1", "2"} {
		c.ok("record", "publication", "past@"+v, "--module", "past")
	}
	c.ok("assign", "pasta", "past", "--package", "past@1", "--effective", "2026-05-01T00:00:00Z")
	c.ok("assign", "pasta", "past", "--package", "past@2", "--effective", "2026-05-03T00:00:00Z")
	c.ok("assign", "pastb", "past", "--package", "past@2", "--effective", "2026-05-03T00:00:00Z")
	strategy := file(t, "all.yaml", "tiers:\n  - name: all\n")
	args := []string{"rollout", "plan", "--as-of", "2026-05-02T00:00:00Z", "--module", "past", "--strategy", strategy, "--as", "restored"}
	planned := read[plan.Plan](c, append(args, "--dry-run")...)
	if len(planned.Steps) != 2 || planned.Ends != 1 || planned.Steps[0].After.String() != "past@1" || planned.Steps[1].After != nil {
		t.Errorf("planned is %+v", planned)
	}
	if found := c.must(exitRefused, args...); !strings.Contains(found.err, "ends 1 assignment") {
		t.Errorf("unconfirmed it says %s", found.err)
	}
	c.ok(append(args, "--confirm-ends", "1")...)
	if found := read[chain.Rollout](c, "get", "rollout", "restored"); found.Changed != 2 || found.Ends != 1 || found.Times.Restores.IsZero() {
		t.Errorf("recorded is %+v", found)
	}
	c.ok("rollout", "abort", "restored")
}

// planFromACommit plans what builds of a commit have published.
func planFromACommit(t *testing.T, c caller) {
	c.fleet("built", "builta")
	send := func(aggregate, verb string, data any) {
		t.Helper()
		body, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		c.ok("send", aggregate, verb, "--data", string(body))
	}
	send("build", "ask", map[string]string{"id": "built-7", "module": "built", "repository": "git/built", "commit": "c7"})
	send("build", "succeed", map[string]string{"id": "built-7"})
	strategy := file(t, "all.yaml", "tiers:\n  - name: all\n")
	args := []string{"rollout", "plan", "--commit", "git/built@c7", "--strategy", strategy, "--dry-run"}
	c.must(exitRefused, args...)
	send("build", "publish", map[string]any{"id": "built-7", "package": map[string]string{"name": "built", "version": "7"}})
	c.ok("record", "publication", "built@7", "--build", "built-7")
	found := read[plan.Plan](c, args...)
	if len(found.Steps) != 1 || found.Steps[0].After.Build != "built-7" || found.Steps[0].After.Commit != "c7" {
		t.Errorf("planned is %+v", found)
	}
}

func plansThatAreRefused(t *testing.T, c caller) {
	c.fleet("refused", "refuseda")
	c.module("other")
	c.ok("record", "publication", "other@1", "--module", "other")
	strategy := file(t, "all.yaml", "tiers:\n  - name: all\n")
	bad := file(t, "bad.yaml", "tiers:\n  - name: all\n    bake: long\n")
	circle := file(t, "circle.yaml", "tiers:\n  - {name: t1, after: [t2]}\n  - {name: t2, after: [t1]}\n")
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"rollout plan --strategy " + strategy:                                        {exitUsage, "--set, --commit or --as-of"},
		"rollout plan --set refused=refused@2":                                       {exitUsage, "--strategy"},
		"rollout plan --set refused=refused@2 --commit a@b --strategy x":             {exitUsage, "one of them"},
		"rollout plan --set refused=refused@2 --node n --strategy x":                 {exitUsage, "--as-of"},
		"rollout plan --set refused=other@1 --strategy " + strategy:                  {exitRefused, "published of module other"},
		"rollout plan --as-of 2h --node refusedz --strategy " + strategy:             {exitNotFound, `there is no node "refusedz"`},
		"rollout plan --as-of 2h --module refusedz --strategy " + strategy:           {exitNotFound, `there is no module "refusedz"`},
		"rollout plan --as-of 2999-01-01 --strategy " + strategy:                     {exitUsage, "lies ahead"},
		"rollout plan --set refused --strategy " + strategy:                          {exitUsage, "MODULE=NAME@VERSION"},
		"rollout plan --set refused=refused@9 --strategy " + strategy:                {exitRefused, "not recorded as published: refused@9"},
		"rollout plan --set refused=refused@2 --strategy no-such-strategy":           {exitNotFound, "no such file"},
		"rollout plan --set refused=refused@2 --track no-such-track":                 {exitNotFound, "no-such-track"},
		"rollout plan --set refused=refused@2 --strategy " + bad:                     {exitUsage, `bad.yaml:3: tiers[0].bake: "long"`},
		"rollout plan --set refused=refused@2 --strategy " + circle:                  {exitUsage, "t1 after t2 after t1"},
		"rollout plan --commit nobody@c1 --strategy " + strategy:                     {exitRefused, "has published anything"},
		"rollout rollback no-such-rollout --reason x":                                {exitNotFound, "no-such-rollout"},
		"strategy check " + bad:                                                      {exitUsage, "bad.yaml:3"},
		"track declare t --module no-such-module --strategy no-such-strategy --on x": {exitUsage, "merge, publication, manual"},
	} {
		found := c.call(strings.Fields(args)...)
		if found.code != want.code || !strings.Contains(found.err, want.says) {
			t.Errorf("%s: exit code %d and\n%swant %d and %q", args, found.code, found.err, want.code, want.says)
		}
	}
	if found := c.ok("strategy", "schema"); !json.Valid([]byte(found.out)) {
		t.Errorf("the schema is %s", found.out)
	}
}
