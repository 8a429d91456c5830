package main

import (
	"strings"
	"testing"
	"time"

	"catenary/audit"
	"catenary/es"
	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/topology"
)

// record appends a fact that no decider would give, as a damaged or foreign program might. It gives its sequence.
func (o opened) record(ref es.Ref, fact any) uint64 {
	o.t.Helper()
	ctx := o.t.Context()
	store, err := natsstore.Open(ctx, o.ledger, natsstore.Config{})
	if err != nil {
		o.t.Fatal(err)
	}
	defer store.Close()
	var head es.Head
	version := uint64(1)
	for m, err := range es.VerifyChain(&head, store.Read(ctx, 0)) {
		if err != nil {
			o.t.Fatal(err)
		}
		if m.Subject == ref.Subject() {
			version++
		}
	}
	name, body, err := events.Registry().Encode(fact)
	if err != nil {
		o.t.Fatal(err)
	}
	m := (&es.Event{
		ID: "poison-" + ref.Key, Type: name, Ref: ref, Version: version, Recorded: time.Now(), Body: body,
		Command: es.Cause{ID: "poison-" + ref.Key, Ref: ref, Digest: es.Digest(body)},
	}).Message(es.ContentTypeMsgpack)
	after := head
	head = head.Seal(&m)
	if err := es.Wait(ctx, store.Append(ctx, after, []es.Message{m})); err != nil {
		o.t.Fatal(err)
	}
	return head.Sequence
}

// until asks about a view until it is so.
func (c caller) until(view string, so func(shownView) bool) shownView {
	c.t.Helper()
	for limit := time.Now().Add(waitLimit); ; <-time.After(10 * time.Millisecond) {
		v := read[shownView](c, "projections", "show", view)
		if so(v) {
			return v
		}
		if time.Now().After(limit) {
			c.t.Fatalf("view %s stays %+v", view, v)
		}
	}
}

func TestProjections(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.node("n1")
	views := read[[]shownView](o.caller, "projections", "ls")
	if len(views) != len(topology.ChainBuckets())+1 || views[len(views)-1].View != audit.StoreView {
		t.Fatalf("ls has %+v", views)
	}
	nodes := o.until("nodes", func(v shownView) bool { return v.State == project.StateRunning && v.Copy.Revision == 1 })
	if nodes.View != topology.BucketNodes || nodes.Position.Revision != 1 || nodes.Fold != 1 || nodes.Generation != 1 || nodes.Policy != project.PolicyStop {
		t.Errorf("show gives %+v", nodes)
	}
	for args, word := range map[string]string{
		"projections ls":                    "chain-backfill",
		"projections ls -o name":            "chain-builds\n",
		"projections show chain-builds":     "is parked",
		"projections show audit-store":      "is parked",
		"__complete projections resume aud": "audit-store",
		"projections show nodes -o yaml":    "view: chain-nodes",
		"__complete projections show ":      "assignments",
		"__complete projections skip nod":   "nodes",
		"__complete projections pause x no": ":4",
	} {
		if found := o.ok(strings.Split(args, " ")...); !strings.Contains(found.out, word) {
			t.Errorf("%s prints\n%s", args, found.out)
		}
	}
	for _, args := range []string{"projections", "projections show none", "projections pause nodes", "projections skip nodes --reason x", "projections resume"} {
		o.must(exitUsage, strings.Fields(args)...)
	}
}

// TestPauseAndSkip is case C10 over the whole chain: an event that a view can't fold stops it, visibly, until somebody says
// what is to become of it.
func TestPauseAndSkip(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.node("n1")
	o.module("web")

	o.ok("projections", "pause", "assignments", "--reason", "the disk is moved")
	o.ok("projections", "pause", "assignments", "--reason", "again") // it is so already
	o.ok("assign", "n1", "web", "--package", "web@1.20", "--wait=false")
	v := o.until("assignments", func(v shownView) bool { return v.Behind > 0 })
	if v.State != project.StatePaused || v.Paused.Reason != "the disk is moved" {
		t.Errorf("paused it shows %+v", v)
	}
	if found := o.ok("projections", "ls"); !strings.Contains(found.out, "the disk is moved") {
		t.Errorf("ls prints\n%s", found.out)
	}
	// What a view that does not go on lacks may have been recorded all the same.
	for _, get := range [][]string{{"get", "assignment", "n1", "web"}, {"get", "assignments", "n1.web"}} {
		found := o.must(exitStale, get...)
		for _, want := range []string{"there is no assignment", "the disk is moved", "may be out of date", "projections resume chain-assignments"} {
			if !strings.Contains(found.err, want) {
				t.Errorf("%v of a paused view says %q, want %q", get, found.err, want)
			}
		}
	}
	o.ok("projections", "resume", "assignments")
	o.until("assignments", func(v shownView) bool {
		return v.State == project.StateRunning && v.Behind == 0 && v.Copy.Revision == 1
	})
	o.ok("get", "assignment", "n1", "web")

	poison := o.record(es.Ref{Aggregate: events.AggregateAssignment, Key: "n9.web"}, events.AssignmentEnded{Node: "n9", Module: "web"})
	o.ok("assign", "n1", "web", "--package", "web@1.21", "--wait=false")
	v = o.until("assignments", func(v shownView) bool { return v.State == project.StateStopped })
	if v.At != poison || v.Type != events.TypeAssignmentEnded || !strings.Contains(v.Reason, "nothing was recorded") {
		t.Errorf("stopped it shows %+v", v)
	}
	if found := o.ok("projections", "show", "assignments"); !strings.Contains(found.out, events.TypeAssignmentEnded) {
		t.Errorf("show prints\n%s", found.out)
	}
	o.ok("get", "nodes") // the others go on
	if found := o.must(exitRefused, "projections", "skip", "assignments", "--event", "1", "--reason", "x"); !strings.Contains(found.err, number(poison)) {
		t.Errorf("a skip of another event says\n%s", found.err)
	}
	if found := o.must(exitRefused, "projections", "skip", "nodes", "--event", number(poison), "--reason", "x"); !strings.Contains(found.err, "neither stopped") {
		t.Errorf("a skip for another view says\n%s", found.err)
	}
	o.ok("projections", "skip", "assignments", "--event", number(poison), "--reason", "recorded by mistake")
	o.until("assignments", func(v shownView) bool {
		return v.State == project.StateRunning && v.Behind == 0 && v.Copy.Revision == 2
	})
	if found := o.ok("projections", "show", "assignments"); !strings.Contains(found.out, "recorded by mistake") {
		t.Errorf("show prints\n%s", found.out)
	}
	o.ok("verify")
	if found := o.ok("log", "--aggregate", "projection"); strings.Count(found.out, "projection.") != 3 {
		t.Errorf("the log has\n%s", found.out)
	}
}

// TestParkedEvents is case C10 in its parking form over the whole chain.
func TestParkedEvents(t *testing.T) {
	t.Parallel()
	o := open(t)
	ref := es.Ref{Aggregate: events.AggregateBuild, Key: "b1"}
	poison := o.record(ref, events.BuildFailed{Failed: "exit 1"})
	o.ok("send", "commit", "record", "--data", `{"repository":"shop","commit":"c1"}`)
	v := o.until("builds", func(v shownView) bool { return v.ParkedCount == 1 })
	if v.State != project.StateRunning || v.Parked[0].Event != poison || v.Parked[0].Instance != "build.b1" || !strings.Contains(v.Parked[0].Said, "nothing was recorded") {
		t.Errorf("parked it shows %+v", v)
	}
	if found := o.ok("projections", "show", "builds"); !strings.Contains(found.out, "build.b1") {
		t.Errorf("show prints\n%s", found.out)
	}
	// The list itself is not out of date, so it ends well; what it lacks is said beside it.
	if found := o.ok("get", "builds", "--all", "-o", "json"); strings.TrimSpace(found.out) != "[]" || !strings.Contains(found.err, "1 of the builds are parked") || !strings.Contains(found.err, "catenary projections show chain-builds") {
		t.Errorf("the list of builds has %s, and says %q", found.out, found.err)
	}
	if found := o.ok("get", "commits"); strings.Contains(found.err, "parked") {
		t.Errorf("the list of commits says %q", found.err)
	}
	for _, read := range []string{"get", "history"} {
		if found := o.must(exitStale, read, "build", "b1"); !strings.Contains(found.err, "can't fold event "+number(poison)) {
			t.Errorf("%s of what is parked says %q", read, found.err)
		}
	}
	o.must(exitNotFound, "get", "build", "b2")
	o.ok("verify")
	if found := o.ok("projections", "skip", "builds", "--event", number(poison), "--reason", "from another chain"); !strings.Contains(found.err, "catenary rebuild chain-builds") {
		t.Errorf("a skip of what is parked says\n%s", found.err)
	}
	o.ok("rebuild", "builds")
	o.must(exitNotFound, "get", "build", "b1")
	o.must(exitUsage, "rebuild", "audit-store")
	if v := o.until("builds", func(v shownView) bool { return v.State == project.StateRunning }); v.ParkedCount != 0 {
		t.Errorf("rebuilt it shows %+v", v)
	}
}

// TestAuditStoreIsSteered parks, skips, pauses and resumes the audit store as the other views, and says in answers what is missing.
func TestAuditStoreIsSteered(t *testing.T) {
	t.Parallel()
	o := open(t)
	poison := o.record(es.Ref{Aggregate: events.AggregateBuild, Key: "b1"}, events.BuildFailed{Failed: "exit 1"})
	v := o.until("audit-store", func(v shownView) bool { return v.ParkedCount == 1 })
	if v.State != project.StateRunning || v.Parked[0].Event != poison || v.Parked[0].Instance != "build.b1" || !strings.Contains(v.Parked[0].Said, "nothing was recorded") {
		t.Errorf("parked it shows %+v", v)
	}
	if found := o.ok("sql", "SELECT 1"); !strings.Contains(found.err, "event "+number(poison)+" of build.b1 can't be folded (unfolded)") {
		t.Errorf("an answer says %q", found.err)
	}
	if found := o.ok("report", "deliveries"); strings.Contains(found.err, "build.b1") {
		t.Errorf("an answer that does not touch it says %q", found.err)
	}
	o.must(exitRefused, "projections", "skip", "audit-store", "--event", "1", "--reason", "x")
	if found := o.ok("projections", "skip", "audit-store", "--event", number(poison), "--reason", "from another chain"); !strings.Contains(found.err, "built anew") {
		t.Errorf("a skip says %q", found.err)
	}
	v = o.until("audit-store", func(v shownView) bool { return v.SkippedCount == 1 && v.Behind == 0 })
	if v.ParkedCount != 0 || v.Skipped[0].Reason != "from another chain" {
		t.Errorf("without it it shows %+v", v)
	}
	if found := o.ok("sql", "SELECT instance, why FROM missing", "-o", "json"); !strings.Contains(found.out, `"skipped"`) || !strings.Contains(found.out, "from another chain") {
		t.Errorf("in SQL there is\n%s", found.out)
	}
	o.ok("projections", "pause", "audit-store", "--reason", "the disk is moved")
	o.node("n1")
	v = o.until("audit-store", func(v shownView) bool { return v.Behind > 0 })
	if v.State != project.StatePaused || v.Paused.Reason != "the disk is moved" {
		t.Errorf("paused it shows %+v", v)
	}
	o.ok("projections", "resume", "audit-store")
	o.until("audit-store", func(v shownView) bool { return v.State == project.StateRunning && v.Behind == 0 })
}
