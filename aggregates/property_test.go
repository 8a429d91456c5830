package aggregates_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/aggregates"
	"catenary/aggregates/assignment"
	"catenary/aggregates/module"
	"catenary/aggregates/node"
	"catenary/commands"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
)

// The small world of the properties: few names, so that everything meets everything. What a module requires does not change.
func smallWorld() (nodeNames, moduleNames []string, requires map[string][]string) {
	return []string{"n1", "n2", "n ä"}, []string{"web", "api", "db", "x.y"}, map[string][]string{"web": {"api", "db"}, "api": {"x.y"}, "x.y": {"api"}}
}

// anyCommand draws a command of any kind.
func anyCommand(t *rapid.T) es.Payload {
	nodeNames, moduleNames, requires := smallWorld()
	n := rapid.SampledFrom(nodeNames).Draw(t, "node")
	m := rapid.SampledFrom(moduleNames).Draw(t, "module")
	id := rapid.SampledFrom([]string{"b1", "b2", "b3"}).Draw(t, "build")
	ref := rapid.SampledFrom([]events.Reference{pkg("web", "1"), pkg("web", "2"), artifact("sha256:1")}).Draw(t, "reference")
	reason := rapid.SampledFrom([]string{"", "why"}).Draw(t, "reason")
	holder := rapid.SampledFrom([]string{"e1", "e2"}).Draw(t, "holder")
	build := events.BuildSpec{ID: id, Module: m, Repository: "r", Commit: "c1", ReuseKey: rapid.SampledFrom([]string{"", "k"}).Draw(t, "reuse key")}
	count := rapid.IntRange(0, 3).Draw(t, "count")
	rolloutID := rapid.SampledFrom([]string{"r1", "r2", "r 3"}).Draw(t, "rollout")
	revertsID := map[string]string{"r1": "r2", "r2": "r 3", "r 3": "r1"}[rolloutID]
	outcome := rapid.SampledFrom([]string{events.StepDone, events.StepFailed, events.StepSkipped}).Draw(t, "step outcome")
	return rapid.SampledFrom([]es.Payload{
		commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: m, Requires: requires[m]}},
		commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: m, Requires: requires[m], Kind: reason}},
		commands.ForgetModule{Module: m},
		commands.RegisterNode{Node: n},
		commands.RelabelNode{Node: n, Labels: map[string]string{"a": reason}},
		commands.RetireNode{Node: n, Confirm: &count},
		commands.RecordCommit{Repository: "r", Commit: id, Branch: reason},
		commands.AskBuild{BuildSpec: build},
		commands.NotAskedBuild{BuildSpec: build, Why: "x"},
		commands.UnknownBuild{ID: id, Why: "x"},
		commands.ReaskBuild{ID: id},
		commands.ClaimBuild{ID: id, By: holder},
		commands.AskBuild{BuildSpec: build, Reasks: map[string]string{"b1": "b2", "b2": "b3", "b3": "b1"}[id]},
		commands.SucceedBuild{ID: id},
		commands.FailBuild{ID: id, Failed: "x"},
		commands.PublishBuild{ID: id, Reference: ref},
		commands.RecordPublication{Reference: ref, Build: rapid.SampledFrom([]string{"", id}).Draw(t, "of build"), Module: m},
		commands.AttestPublication{Reference: ref, Attestation: events.Attestation{Kind: holder}},
		commands.VetoPublication{Reference: ref, Reason: "bad"},
		commands.LiftVeto{Reference: ref},
		commands.Assign{Node: n, Module: m, Reference: ref, Reason: reason},
		commands.Assign{Node: n, Module: m, Reference: ref, Reason: reason, Provisioning: events.Raw(`{"a":1}`)},
		commands.Assign{Node: n, Module: m, Build: id},
		commands.Unassign{Node: n, Module: m},
		commands.Move{Node: n, Module: m, To: rapid.SampledFrom(nodeNames).Draw(t, "to"), Reason: reason},
		commands.Pend{Node: n, Module: m, Reference: ref, Reason: reason},
		commands.Observe{Seen: events.Seen{Node: n, Module: m, Reference: ref}, Outcome: rapid.SampledFrom([]string{"applied", "healthy", "apply-failed"}).Draw(t, "outcome")},
		commands.DeclareFreeze{Name: holder, Reason: reason},
		commands.LiftFreeze{Name: holder},
		commands.TakeLease{Name: "l", Holder: holder, TTL: "10s"},
		commands.DeclareStrategy{Name: holder, Strategy: events.Raw(`{"tiers":[{"name":"all","retry":1}]}`)},
		commands.EndStrategy{Name: holder},
		commands.DeclareTrack{TrackSpec: events.TrackSpec{Track: id, Modules: []string{m}, Strategy: holder, On: events.OnMerge}},
		commands.ChangeTrack{TrackSpec: events.TrackSpec{Track: id, Modules: []string{"api", "web"}[:1+count%2], Strategy: holder, On: events.OnManual}},
		commands.EndTrack{Track: id},
		commands.HoldMerge{Repository: "r", Branch: "main", Commit: id, Alone: count == 0, Waiting: holder},
		commands.TakeMerge{Repository: "r", Branch: "main", Commit: id, Rollout: rolloutID},
		commands.ReleaseMerge{Repository: "r", Branch: "main", Commit: id, Placed: count > 1},
		onePart(rolloutID, revertsID, n, m, ref),
		onePart(rolloutID, revertsID, n, m, ref),
		commands.ApproveRollout{ID: rolloutID},
		commands.StartRollout{ID: rolloutID},
		commands.AdvanceRollout{ID: rolloutID},
		commands.BeginStep{ID: rolloutID, StepName: events.StepName{Node: n, Module: m}},
		commands.EndStep{ID: rolloutID, StepName: events.StepName{Node: n, Module: m}, Attempt: count, StepResult: events.StepResult{Outcome: outcome}},
		commands.SettleStep{ID: rolloutID, StepName: events.StepName{Node: n, Module: m}, Outcome: outcome, Reason: "x"},
		commands.RetryStep{ID: rolloutID, StepName: events.StepName{Node: n, Module: m}, Reason: "x"},
		commands.BlockRollout{ID: rolloutID, Holds: []events.Hold{{Reason: events.HoldOffline, Count: count}}},
		commands.PauseRollout{ID: rolloutID},
		commands.ResumeRollout{ID: rolloutID},
		commands.AbortRollout{ID: rolloutID},
		commands.SupersedeRollout{ID: rolloutID, By: revertsID},
		commands.Observe{Seen: events.Seen{Node: n, Module: m, Reference: ref, Rollout: rolloutID}, Outcome: rapid.SampledFrom([]string{"applied", "healthy", "apply-failed"}).Draw(t, "of rollout")},
		commands.RenewLease{Name: "l", Holder: holder},
		commands.ReleaseLease{Name: "l", Holder: holder},
		commands.PauseProjection{View: holder, Reason: "x"},
		commands.ResumeProjection{View: holder, Reason: reason},
		commands.SkipProjection{View: holder, Event: uint64(count + 1), Reason: "x"},
		commands.StartWriter{WriterStarted: events.WriterStarted{ID: "w", Program: "1", Rules: 1}},
	}).Draw(t, "command")
}

// onePart gives a whole plan for one step, which takes another rollout back where it can.
func onePart(id, reverts, node, module string, ref events.Reference) commands.PlanRollout {
	strategy := events.Raw(`{"tiers":[{"name":"all","retry":1}]}`)
	step := events.PlannedStep{Tier: "all", StepName: events.StepName{Node: node, Module: module}, After: &events.Version{Reference: ref}}
	digest, err := events.PlanDigest{}.With(step)
	if err != nil {
		panic(err)
	}
	p := commands.PlanRollout{
		ID: id, Part: 1, Head: &events.PlanHead{
			Strategy: strategy, StrategyDigest: es.Digest(strategy), Targets: []events.Target{{Module: module, Version: *step.After}},
		},
		Steps: []events.PlannedStep{step}, Count: 1, Digest: digest.String(),
	}
	if node == "n2" {
		p.Head.Reverts = reverts
	}
	return p
}

// past is what has happened to a world, in order: events, and commands it was told of without events.
type past []any

// world gives the world that a fresh fold of the past gives.
func (p past) world(t *rapid.T) *aggregates.World {
	w, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p {
		switch s := step.(type) {
		case es.Event:
			if err := w.Apply(s); err != nil {
				t.Fatal(err)
			}
		case es.Command:
			w.Note(s)
		}
	}
	return w
}

// TestWorldIsTheFoldOfItsPast sends anything in any order, with marks, going back, forgetting and restarts from snapshots in
// between, and demands
// that the world always is what a fresh fold of what has happened gives, and that what must never be so never is.
func TestWorldIsTheFoldOfItsPast(t *testing.T) {
	t.Parallel()
	registry := events.Registry()
	rapid.Check(t, func(t *rapid.T) {
		world := past{}.world(t)
		var happened past
		type saved struct {
			mark es.Mark
			past past
		}
		var marks []saved
		now, sequence := day, uint64(0)
		// A few facts to begin with, so that most commands find something.
		send := func(p es.Payload, effective time.Time, backfill bool) {
			now = now.Add(time.Second)
			c := es.Command{Ref: p.Ref(), Verb: p.Verb(), Data: p, Actor: "a", Received: now, Effective: effective, Backfill: backfill}
			facts, err := world.Decide(c)
			var r *es.Refusal
			switch {
			case errors.As(err, &r):
				return
			case err != nil:
				t.Fatal(err)
			case len(facts) == 0:
				world.Note(c)
				happened = append(happened, c)
			}
			chain := &estest.Chain{}
			for _, f := range facts {
				sequence++
				e := stored(t, registry, chain, c, f, sequence, world.Version(f.Ref)+1)
				if err := world.Apply(e); err != nil {
					t.Fatal(err)
				}
				happened = append(happened, e)
			}
		}
		nodeNames, moduleNames, requires := smallWorld()
		for _, n := range nodeNames {
			send(commands.RegisterNode{Node: n}, time.Time{}, false)
		}
		for _, m := range moduleNames {
			send(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: m, Requires: requires[m]}}, time.Time{}, false)
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				p := anyCommand(t)
				if p.Validate() != nil {
					t.Fatalf("%#v is malformed", p)
				}
				effective := rapid.SampledFrom([]time.Time{{}, {}, {}, now, now.Add(-time.Minute), now.Add(time.Minute)}).Draw(t, "effective")
				send(p, effective, rapid.IntRange(0, 9).Draw(t, "backfill") == 0)
			},
			"mark": func(*rapid.T) { marks = append(marks, saved{world.Mark(), slices.Clone(happened)}) },
			"rollback": func(t *rapid.T) {
				if len(marks) > 0 {
					i := rapid.IntRange(0, len(marks)-1).Draw(t, "to")
					world.Rollback(marks[i].mark)
					happened, marks = slices.Clone(marks[i].past), marks[:i+1]
				}
			},
			"release": func(t *rapid.T) {
				if len(marks) > 0 {
					i := rapid.IntRange(0, len(marks)-1).Draw(t, "up to")
					world.Release(marks[i].mark)
					marks = marks[i+1:]
				}
			},
			"restore": func(t *rapid.T) {
				// What was only noted is lost.
				happened = slices.DeleteFunc(slices.Clone(happened), func(step any) bool { _, noted := step.(es.Command); return noted })
				folded, data := happened.world(t), snapshotOf(t, world)
				world, marks = restored(t, data), nil
				if !bytes.Equal(data, snapshotOf(t, world)) {
					t.Fatal("the snapshot of what was restored has other bytes")
				}
				for range 5 {
					now = now.Add(time.Second)
					p := anyCommand(t)
					sameDecision(t, folded, world, es.Command{Ref: p.Ref(), Verb: p.Verb(), Data: p, Actor: "a", Received: now})
				}
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(happened.world(t).Dump(), world.Dump()); diff != "" {
					t.Fatalf("a fresh fold gives another world (-fold +world):\n%s", diff)
				}
				checkInvariants(t, world)
			},
		})
	})
}

// stored gives a fact as it is read back from the stream.
func stored(t *rapid.T, registry *es.Registry, chain *estest.Chain, c es.Command, f es.KeyedEvent, sequence, version uint64) es.Event {
	name, body, err := registry.Encode(f.Data)
	if err != nil {
		t.Fatal(err)
	}
	e := es.Event{
		ID: fmt.Sprint("e", sequence), Type: name, Ref: f.Ref, Version: version, Recorded: c.Received, Effective: c.At(), Backfill: f.Backfill, Body: body,
		Command: es.Cause{ID: "c", Ref: c.Ref, Actor: c.Actor},
	}
	read, err := registry.Decode(chain.Seal(&e))
	if err != nil {
		t.Fatal(err)
	}
	read.Sequence = sequence
	return read
}

// checkInvariants demands what the packages promise of what stands.
func checkInvariants(t *rapid.T, w *aggregates.World) {
	nodeNames, moduleNames, requires := smallWorld()
	for _, n := range nodeNames {
		standing := w.StandingOn(n)
		stands := func(m string) bool { return slices.Contains(standing, m) }
		held := map[string]bool{}
		for _, m := range moduleNames {
			s := w.Assignment(n, m)
			switch {
			case s.Stands() != stands(m):
				t.Fatalf("%s on %s: the index says otherwise than the state", m, n)
			case !s.Stands():
				continue
			case w.Module(m).Status != module.Registered:
				t.Fatalf("%s stands on %s and was forgotten", m, n)
			case w.Node(n).Status != node.Registered:
				t.Fatalf("%s stands on %s, which is retired", m, n)
			}
			for _, r := range requires[m] {
				if !stands(r) {
					t.Fatalf("%s stands on %s without %s, which it requires", m, n, r)
				}
			}
			if s.OwnSake() {
				hold(held, m, requires)
			}
			for _, by := range s.RequiredBy() {
				if !stands(by) {
					t.Fatalf("%s stands on %s for %s, which does not", m, n, by)
				}
			}
		}
		for _, m := range standing {
			if !held[m] {
				t.Fatalf("%s stands on %s and nothing there that stands for its own sake requires it", m, n)
			}
		}
		for _, m := range w.AssignedOn(n) {
			if s := w.Assignment(n, m); !s.Stands() && s.Status != assignment.Pending {
				t.Fatalf("%s neither stands nor waits on %s, but the index has it", m, n)
			}
		}
	}
}

func hold(held map[string]bool, m string, requires map[string][]string) {
	if held[m] {
		return
	}
	held[m] = true
	for _, r := range requires[m] {
		hold(held, r, requires)
	}
}
