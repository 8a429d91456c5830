package aggregates_test

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/aggregates"
	"catenary/aggregates/snapshot"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// fataler is a test, or a round of a property.
type fataler interface{ Fatal(...any) }

func snapshotOf(t fataler, w *aggregates.World) []byte {
	var out bytes.Buffer
	if err := w.Snapshot(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func restored(t fataler, data []byte) *aggregates.World {
	w, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Restore(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return w
}

// sameDecision demands that two worlds answer a command in the same way.
func sameDecision(t *rapid.T, a, b *aggregates.World, c es.Command) {
	factsA, errA := a.Decide(c)
	factsB, errB := b.Decide(c)
	if diff := cmp.Diff(errText(errA), errText(errB)); diff != "" {
		t.Fatalf("%s %s is refused otherwise (-folded +restored):\n%s", c.Ref, c.Verb, diff)
	}
	if diff := cmp.Diff(factsA, factsB); diff != "" {
		t.Fatalf("%s %s leads to other facts (-folded +restored):\n%s", c.Ref, c.Verb, diff)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// everything is a story in which each kind of instance has each kind of state that can't be told from another.
func everything() []es.KeyedEvent {
	ref, second := pkg("web", "1"), artifact("sha256:2")
	window := &events.Window{Recurring: &events.Recurring{Days: []string{"sat"}, From: "22:00", To: "02:00", Zone: "Europe/Berlin"}}
	rebuilt := spec("b4")
	rebuilt.ReuseKey = "same"
	facts := append(nodes("n1", "n 2"), requiring("db"), requiring("web", "db"), requiring("x.y", "web", "db"))
	facts = append(facts,
		on(commands.ModuleRef("old"), events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "old"}}), on(commands.ModuleRef("old"), events.ModuleEnded{}),
		on(commands.NodeRef("n3"), events.NodeRegistered{Node: "n3", ManagedBy: events.ManagedByExternal, Labels: map[string]string{"a": "b"}}),
		on(commands.NodeRef("n4"), events.NodeRegistered{Node: "n4"}), on(commands.NodeRef("n4"), events.NodeRetired{}),
		on(commands.CommitRef("shop", "c1"), events.CommitRecorded{Repository: "shop", Commit: "c1"}),
		asked("b1"), succeeded("b1"), on(commands.BuildRef("b1"), events.BuildPublished{Reference: ref}),
		asked("b2"), on(commands.BuildRef("b2"), events.BuildFailed{Failed: "exit 1"}),
		asked("b3"), on(commands.BuildRef("b3"), events.BuildOutcomeUnknown{Why: "?"}), on(commands.BuildRef("b3"), events.BuildReaskPending{}),
		on(commands.BuildRef("b3"), events.BuildReaskClaimed{By: "e1"}),
		on(commands.BuildRef("b4"), events.BuildAsked{BuildSpec: rebuilt}), succeeded("b4"), on(commands.BuildRef("b4"), events.BuildPublished{Reference: second}),
		on(commands.BuildRef("b5"), events.BuildNotAsked{BuildSpec: spec("b5"), Why: "no runner"}),
		published(ref, "b1", "c1", "web"), published(second, "b4", "c1", "web"), published(pkg("db", "7"), "", "", "db"),
		on(commands.PublicationRef(ref), events.PublicationAttested{Attestation: events.Attestation{Kind: "sbom"}}),
		on(commands.PublicationRef(ref), events.PublicationAttested{Attestation: events.Attestation{Kind: "signature"}}),
		vetoed(second, "broken"),
		assigned("n1", "web", "1"), assigned("n1", "db", "", "web"),
		on(commands.AssignmentRef("n1", "web"), events.AssignmentApplied{Seen: events.Seen{Node: "n1", Module: "web", Reference: ref}}),
		on(commands.AssignmentRef("n 2", "x.y"), events.AssignmentPended{Told: events.Told{Node: "n 2", Module: "x.y", Rollout: "r1"}}),
		on(commands.AssignmentRef("n 2", "db"), events.AssignmentAssigned{Told: events.Told{Node: "n 2", Module: "db", Provisioning: events.Raw(`{"a":1}`)}}),
		assigned("n3", "web", "1"), ended("n3", "web"),
		on(commands.AssignmentRef("n 2", "db"), events.AssignmentApplied{Seen: events.Seen{Node: "n 2", Module: "db", Outputs: map[string]string{"port": "1", "a": ""}}}),
		on(commands.AssignmentRef("n 2", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n 2", Module: "web", Inputs: []events.Handed{
			{StepName: events.StepName{Node: "n 2", Module: "db"}, Values: map[string]string{"port": "1", "a": ""}, Changed: []string{"a", "gone"}},
		}}}),
		on(commands.FreezeRef("f1"), events.FreezeDeclared{Name: "f1", Selector: events.Selector{Modules: []string{"web"}, Labels: map[string]string{"a": "b"}}, Window: window}),
		on(commands.FreezeRef("f2"), events.FreezeDeclared{Name: "f2"}), on(commands.FreezeRef("f2"), events.FreezeLifted{}),
		on(commands.LeaseRef("l1"), events.LeaseTaken{Name: "l1", Holder: "e1", TTL: "10s"}),
		on(commands.LeaseRef("l2"), events.LeaseTaken{Name: "l2", Holder: "e2", TTL: "1m"}), on(commands.LeaseRef("l2"), events.LeaseReleased{}),
		on(commands.ProjectionRef("v1"), events.ProjectionPaused{View: "v1", Reason: "disk"}),
		on(commands.ProjectionRef("v1"), events.ProjectionSkipped{View: "v1", Event: 9, Reason: "x"}),
		on(commands.ProjectionRef("v1"), events.ProjectionSkipped{View: "v1", Event: 7, Reason: "x"}),
		on(commands.ProjectionRef("v2"), events.ProjectionSkipped{View: "v2", Event: 1 << 40, Reason: "x"}),
		on(es.Ref{Aggregate: events.AggregateWriter, Key: events.WriterKey}, events.WriterStarted{ID: "w"}),
	)
	return append(facts, carried()...)
}

// carried is a story in which each kind of instance that rollouts need has each kind of state.
func carried() []es.KeyedEvent {
	strategy := events.Raw(`{"tiers":[{"name":"all","bake":"1m"}]}`)
	one, two := events.StepName{Node: "n1", Module: "web"}, events.StepName{Node: "n 2", Module: "x.y"}
	version := events.Version{Reference: pkg("web", "1"), Build: "b1", Commit: "c1"}
	rolling, merge := commands.RolloutRef("r.1"), commands.MergeRef("shop", "main", "c1")
	facts := queued("r0")
	return append(facts,
		on(commands.StrategyRef("s1"), events.StrategyDeclared{Name: "s1", Strategy: strategy, Digest: "d"}),
		on(commands.StrategyRef("s2"), events.StrategyDeclared{Name: "s2", Strategy: strategy, Digest: "d"}), on(commands.StrategyRef("s2"), events.StrategyEnded{}),
		on(commands.TrackRef("t 1"), events.TrackDeclared{TrackSpec: events.TrackSpec{Track: "t 1", Modules: []string{"web", "x.y"}, Strategy: "s1"}}),
		on(commands.TrackRef("t2"), events.TrackDeclared{TrackSpec: events.TrackSpec{Track: "t2", Modules: []string{"old"}, Strategy: "s1"}}), on(commands.TrackRef("t2"), events.TrackEnded{}),
		on(merge, events.MergeHeld{Repository: "shop", Branch: "main", Commit: "c1", Waiting: "w", Alone: true}), on(merge, events.MergeTaken{Rollout: "r.1"}),
		on(rolling, events.RolloutPlanning{ID: "r.1", PlanHead: events.PlanHead{
			Strategy: strategy, Reason: "why", Reverts: "r0", Supersedes: []string{"r0"}, Targets: []events.Target{{Module: "web", Version: version}},
		}}),
		on(rolling, events.RolloutStepsPlanned{Part: 1, Steps: []events.PlannedStep{
			{Tier: "all", StepName: one, Before: &version, After: &events.Version{Reference: artifact("sha256:2")}, Tried: 1},
			{Tier: "all", StepName: two, Before: &version, After: &version, Refresh: true, WaitsFor: []events.WaitFor{{StepName: one, Notify: true}}},
		}}),
		on(rolling, events.RolloutPlanned{Count: 2, Digest: "d"}), on(rolling, events.RolloutStarted{}), on(rolling, events.RolloutTierEntered{Tier: "all"}),
		on(rolling, events.RolloutApproved{Tier: "all"}), on(rolling, events.RolloutStepBegun{Tier: "all", StepName: one, Attempt: 2}),
		on(rolling, events.RolloutPaused{}), on(rolling, events.RolloutResumed{}),
		on(rolling, events.RolloutStepEnded{Tier: "all", StepName: one, Attempt: 2, StepResult: events.StepResult{Outcome: events.StepDone}, Notified: []events.StepName{two}}),
		on(rolling, events.RolloutBlocked{Holds: []events.Hold{{Reason: events.HoldBake}}}), on(rolling, events.RolloutPaused{}),
		on(commands.RolloutRef("r0"), events.RolloutSuperseded{By: "r.1"}), on(commands.RolloutRef("r0"), events.RolloutReverted{By: "r.1"}),
		on(commands.AssignmentRef("n9", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n9", Module: "web", Rollout: "r.1"}}),
		on(commands.AssignmentRef("n9", "web"), events.AssignmentEnded{Node: "n9", Module: "web", Rollout: "r.1"}),
		on(commands.AssignmentRef("n9", "web"), events.AssignmentRemoved{Seen: events.Seen{Node: "n9", Module: "web", Rollout: "r.1"}}),
	)
}

func TestSnapshotHoldsEverything(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.apply(day, everything()...)
	data := snapshotOf(t, l.world)
	got := restored(t, data)
	if diff := cmp.Diff(l.world.Dump(), got.Dump()); diff != "" {
		t.Errorf("the world restored (-folded +restored):\n%s", diff)
	}
	if !bytes.Equal(data, snapshotOf(t, got)) {
		t.Error("the snapshot of what was restored has other bytes")
	}
}

// TestSnapshotLeavesOutWhatIsNoted keeps the snapshot a matter of events alone: renewals have none.
func TestSnapshotLeavesOutWhatIsNoted(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.apply(day, taken("e1"))
	before := snapshotOf(t, l.world)
	if got := l.status(renew("e1"), after(8)); got != es.StatusUnchanged {
		t.Fatalf("renewing: %s", got)
	}
	if got := l.status(take("e2"), after(15)); got != es.StatusRejected {
		t.Fatalf("taking what was renewed: %s", got)
	}
	data := snapshotOf(t, l.world)
	if !bytes.Equal(before, data) {
		t.Error("a renewal changes the snapshot")
	}
	l.world = restored(t, data)
	if got := l.status(take("e2"), after(15)); got != es.StatusAccepted {
		t.Errorf("taking it where the renewal is not known: %s", got)
	}
}

// TestSnapshotOfTheEmptyWorld is the base of an empty stream.
func TestSnapshotOfTheEmptyWorld(t *testing.T) {
	t.Parallel()
	if got := restored(t, snapshotOf(t, newLedger(t).world)).Dump(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

// TestDamagedSnapshotIsAnError changes bytes of a snapshot. What can't be told from a snapshot is for a checksum to find; the
// world MUST NOT panic over it.
func TestDamagedSnapshotIsAnError(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.apply(day, everything()...)
	whole := snapshotOf(t, l.world)
	for cut := range whole {
		w := newLedger(t).world
		if err := w.Restore(bytes.NewReader(whole[:cut])); !errors.Is(err, snapshot.ErrForm) {
			t.Fatalf("cut at %d of %d: got %v", cut, len(whole), err)
		}
	}
	for at := range whole {
		changed := bytes.Clone(whole)
		changed[at] ^= 1 << (at % 8)
		w := newLedger(t).world
		if err := w.Restore(bytes.NewReader(changed)); err != nil && !errors.Is(err, snapshot.ErrForm) {
			t.Fatalf("changed at %d: got %v", at, err)
		}
	}
}
