package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/chain"
	"catenary/embedded"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/internal/topology"
)

// TestRepair is the repair half of case A14: the value is mended, the stream is untouched, and what was forged is in no history.
func TestRepair(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.node("n1")
	o.module("web")
	o.ok("assign", "n1", "web", "--package", "web@1.20")
	before := read[verification](o.caller, "verify")
	o.forge(topology.BucketAssignments, "n1.web", `{"node":"n1","module":"web","package":{"name":"web","version":"6.66"}}`)
	o.must(exitFailed, "verify")

	planned := o.must(exitFailed, "repair", "--dry-run", "-o", "json")
	var plan rebuilds
	if err := json.Unmarshal([]byte(planned.out), &plan); err != nil {
		t.Fatal(err)
	}
	if plan.OK || len(plan.Views) != len(topology.ChainBuckets()) || !strings.Contains(planned.out, `"replaces":2`) {
		t.Errorf("a dry run printed %s", planned.out)
	}
	o.must(exitFailed, "verify")
	if found := o.ok("repair", "assignments"); !strings.Contains(found.out, "n1.web") || !strings.Contains(found.out, "mended") {
		t.Errorf("repair printed\n%swant the key that was mended", found.out)
	}
	after := read[verification](o.caller, "verify")
	if !after.OK || after.Head != before.Head {
		t.Errorf("verify found %+v, want all well over the same stream", after)
	}
	for _, b := range after.Buckets {
		if mended := b.Name == topology.BucketAssignments; (b.Mended == 1) != mended {
			t.Errorf("%s has %d mending values", b.Name, b.Mended)
		}
	}
	if history := o.ok("history", "assignment", "n1", "web"); strings.Contains(history.out, "6.66") || strings.Count(history.out, "1.20") != 1 {
		t.Errorf("history shows\n%swant the one true value", history.out)
	}
	o.ok("assign", "n1", "web", "--package", "web@1.21")
	if again := o.ok("repair", "-o", "name"); strings.Contains(again.out, "n1.web") {
		t.Errorf("repaired again it mends %s", again.out)
	}
	o.ok("verify")
	for _, usage := range [][]string{{"repair", "x"}, {"rebuild"}, {"rebuild", "nodes", "--all"}} {
		o.must(exitUsage, usage...)
	}
}

// TestRepairOfAStoppedView: a value that nobody of ours wrote stops a view, reads say that they may be out of date, and a repair
// lets it go on.
func TestRepairOfAStoppedView(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.node("n1")
	o.ok("get", "nodes")
	o.forge(topology.BucketNodes, "n1", `{"node":"n1","labels":{"forged":"yes"}}`)
	recorded := read[es.Answer](o.caller, "send", "node", "register", "--data", `{"node":"n2"}`, "--wait", "false")
	deadline := time.After(waitLimit)
	for {
		found := o.call("get", "nodes")
		if found.code == exitStale && strings.Contains(found.err, "has stopped at event") && strings.Contains(found.err, "catenary repair chain-nodes") &&
			strings.Contains(found.err, "catenary rebuild chain-nodes --anew") {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("get ends with %d and says %q", found.code, found.err)
		default:
		}
	}
	o.module("web")
	o.ok("get", "modules")
	o.ok("repair", "nodes")
	o.ok("get", "node", "n2", "--at-least", strconv.FormatUint(recorded.Sequence, 10))
	o.ok("verify")
}

// TestRebuildUnderLoad is case C22 through the copies that people read: while commands come, a reader in a loop sees the old value
// or the new, never none and never an older one after a newer.
func TestRebuildUnderLoad(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.node("n1")
	o.module("web")
	o.ok("assign", "n1", "web", "--package", "web@0")

	nc, err := nats.Connect(o.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	reader := chain.NewReader(chain.Config{Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return natskv.Open(ctx, nc, bucket) }})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	reads := 0
	group.Go(func() {
		var last uint64
		for ctx.Err() == nil {
			e, err := chain.Get(context.WithoutCancel(ctx), reader, chain.Assignments, "n1", "web")
			if err != nil || e.Sequence < last {
				t.Errorf("read %d: event %d after %d, error %v", reads, e.Sequence, last, err)
				return
			}
			last, reads = e.Sequence, reads+1
		}
	})
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if found := o.call("assign", "n1", "web", "--package", "web@"+time.Duration(i).String(), "--wait", "false"); found.code != exitOK && ctx.Err() == nil {
				t.Errorf("assign %d ended with %d: %s", i, found.code, found.err)
				return
			}
		}
	})
	if found := o.ok("rebuild", "assignments", "--anew"); !strings.Contains(found.out, "chain-assignments-g2") {
		t.Errorf("rebuild printed\n%swant the new bucket's name", found.out)
	}
	o.ok("rebuild", "assignments")
	cancel()
	group.Wait()
	o.ok("assign", "n1", "web", "--package", "web@last")
	if reads < 10 {
		t.Errorf("only %d reads", reads)
	}
	if found := o.ok("get", "assignment", "n1", "web"); !strings.Contains(found.out, "last") {
		t.Errorf("get shows\n%s", found.out)
	}
	verified := o.ok("verify")
	if !strings.Contains(verified.out, "chain-assignments-g2") {
		t.Errorf("verify shows\n%swant the generation that is read", verified.out)
	}
	// The old generation can still be read, by its name.
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	old, err := js.KeyValue(t.Context(), topology.BucketAssignments)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := old.Get(t.Context(), "n1.web"); err != nil || strings.Contains(string(e.Value()), "last") {
		t.Errorf("the old generation has %v, %v", e, err)
	}
}

// TestRebuiltChainStartsAgain: what was rebuilt is read after a new start, also when the old generation was removed by hand as the
// pages say, and all generations in turn find room.
func TestRebuiltChainStartsAgain(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	u := started(t, "--store", store, "--durability", "interval")
	c := caller{t: t, url: u.ready.NATS}
	c.node("n1")
	for range 3 {
		c.ok("rebuild", "--all", "--anew", "-o", "name")
	}
	c.node("n2")
	c.ok("verify")
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	for _, path := range []string{embedded.MirrorPath(topology.BucketNodes), strings.Replace(embedded.MirrorPath(topology.BucketNodes), topology.AccountOps, topology.AccountLedger, 1)} {
		if _, err := os.Stat(filepath.Join(store, path)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(store, path)); err != nil {
			t.Fatal(err)
		}
	}
	u = started(t, "--store", store, "--durability", "interval")
	c = caller{t: t, url: u.ready.NATS}
	if found := c.ok("get", "nodes", "-o", "name"); found.out != "n1\nn2\n" {
		t.Errorf("nodes are %q", found.out)
	}
	c.node("n3")
	if found := c.ok("verify"); !strings.Contains(found.out, "chain-nodes-g4") {
		t.Errorf("verify shows\n%s", found.out)
	}
	if code := u.stop(); code != exitOK {
		t.Errorf("it ended with %d:\n%s", code, u.stderr.String())
	}
}

// TestProgressOfARebuild: a stage that counts no events is none of which all is done.
func TestProgressOfARebuild(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	a := app{Main: Main{Stderr: &said, Env: func(string) string { return "" }, Now: func() time.Time { return now }}}
	talk := workTalk{app: &a, view: "nodes", since: now}
	for _, p := range []project.WorkProgress{{Stage: project.StageWaiting}, {Stage: project.StageBuilding, Tail: 3000}, {Stage: project.StageBuilding, Events: 1500, Tail: 3000}} {
		talk.show(p)
		now = now.Add(time.Second)
	}
	want := fmt.Sprintf("nodes: %s\nnodes: %s, 0 of 3,000 events (0 %%)\nnodes: %[2]s, 1,500 of 3,000 events (50 %%), 1,500 a second\n", project.StageWaiting, project.StageBuilding)
	if said.String() != want {
		t.Errorf("it says\n%swant\n%s", said.String(), want)
	}
}
