package projections_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/chain"
	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/internal/topology"
	"catenary/projections"
)

func TestAllHasAViewForEachBucket(t *testing.T) {
	t.Parallel()
	var buckets []string
	for _, v := range projections.All() {
		buckets = append(buckets, v.Name())
		if _, ok := v.(project.Selective); !ok || v.Version() < 1 {
			t.Errorf("%s does not say which aggregates it reads, or has version %d", v.Name(), v.Version())
		}
	}
	if diff := cmp.Diff(topology.ChainBuckets(), buckets); diff != "" {
		t.Errorf("views (-buckets +views):\n%s", diff)
	}
}

// read gives facts as views get them: stored, and decoded again.
func read(t *testing.T, facts []projecttest.Fact) []es.Event {
	t.Helper()
	registry, store := events.Registry(), memstore.New(memstore.Config{})
	projecttest.Append(t, registry, store, facts...)
	var out []es.Event
	for m, err := range store.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := registry.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// stored is a value in a bucket.
type stored struct {
	bucket string
	event  uint64
	project.Value
}

// fold gives all values that views make of events.
func fold(t *rapid.T, views []project.View, all []es.Event) []stored {
	out := []stored{}
	for _, e := range all {
		for _, v := range views {
			if !slices.Contains(v.(project.Selective).Aggregates(), e.Ref.Aggregate) {
				continue
			}
			values, err := v.Fold(e)
			if err != nil {
				t.Fatalf("event %d (%s): %v", e.Sequence, e.Type, err)
			}
			for _, value := range values {
				out = append(out, stored{v.Name(), e.Sequence, value})
			}
		}
	}
	return out
}

// newest gives the newest value of each key of a bucket.
func newest(values []stored, bucket string) map[string][]byte {
	out := map[string][]byte{}
	for _, v := range values {
		if v.bucket == bucket {
			out[v.Key] = v.Data
		}
	}
	return out
}

// TestHistories folds histories as deciders allow them, and checks what must hold whatever happened.
func TestHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		facts := drawHistory(rt, 40)
		all := read(t, facts)
		values := fold(rt, projections.All(), all)

		if diff := cmp.Diff(values, fold(rt, projections.All(), all), cmp.AllowUnexported(stored{})); diff != "" {
			rt.Fatalf("two folds of the same events differ:\n%s", diff)
		}
		checkTakenUp(rt, all, values)
		checkKeys(rt, all, values)
		checkTold(rt, all, values)
	})
}

// checkTakenUp stops the views somewhere, takes new ones up from what stands in the buckets, and goes on.
func checkTakenUp(t *rapid.T, all []es.Event, values []stored) {
	cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
	before := slices.IndexFunc(values, func(v stored) bool { return v.event > uint64(cut) })
	if before < 0 {
		before = len(values)
	}
	views := projections.All()
	for _, v := range views {
		for key, value := range newest(values[:before], v.Name()) {
			if err := v.Load(key, value); err != nil {
				t.Fatalf("load %s of %s: %v", key, v.Name(), err)
			}
		}
	}
	if diff := cmp.Diff(values[before:], fold(t, views, all[cut:]), cmp.AllowUnexported(stored{})); diff != "" {
		t.Fatalf("taken up after event %d (-folded +taken up):\n%s", cut, diff)
	}
}

// checkKeys holds that each event leads to one value under its own instance's key, in the kind's bucket or, when it was
// added to the history, in the bucket for that; so no key is ever removed, and none comes from nowhere.
func checkKeys(t *rapid.T, all []es.Event, values []stored) {
	kinds := map[string]string{
		events.AggregateModule: topology.BucketModules, events.AggregateNode: topology.BucketNodes,
		events.AggregateCommit: topology.BucketCommits, events.AggregateBuild: topology.BucketBuilds,
		events.AggregatePublication: topology.BucketPublished, events.AggregateAssignment: topology.BucketAssignments,
		events.AggregateFreeze: topology.BucketFreezes, events.AggregateMerge: topology.BucketMerges, events.AggregateTrack: topology.BucketTracks,
		events.AggregateStrategy: topology.BucketStrategies, events.AggregateRollout: topology.BucketRollouts,
	}
	var want, have []string
	for _, e := range all {
		bucket, ok := kinds[e.Ref.Aggregate]
		switch {
		case !ok:
		case e.Backfill:
			want = append(want, fmt.Sprintf("%d %s %s.%s", e.Sequence, topology.BucketBackfill, e.Ref.Aggregate, e.Ref.Key))
		default:
			want = append(want, fmt.Sprintf("%d %s %s", e.Sequence, bucket, e.Ref.Key))
			for _, step := range stepsOf(e.Data) {
				want = append(want, fmt.Sprintf("%d %s %s.%s", e.Sequence, topology.BucketSteps, e.Ref.Key, step))
			}
		}
	}
	for _, v := range values {
		have = append(have, fmt.Sprintf("%d %s %s", v.event, v.bucket, v.Key))
		if len(bytes.TrimSpace(v.Data)) == 0 {
			t.Fatalf("the value of key %s of %s at event %d is empty", v.Key, v.bucket, v.event)
		}
		if strings.Contains(string(v.Data), "0001-01-01") || strings.Contains(string(v.Data), "+0") {
			t.Fatalf("a time is not left out or not in UTC: %s", v.Data)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatalf("values (-want +have):\n%s", diff)
	}
}

// stepsOf gives the keys, behind that of their rollout, of the steps that an event changes.
func stepsOf(data any) []string {
	switch data := data.(type) {
	case events.RolloutStepsPlanned:
		keys := make([]string, len(data.Steps))
		for i, s := range data.Steps {
			keys[i] = es.Key(s.Tier, s.Node, s.Module)
		}
		return keys
	case events.RolloutStepBegun:
		return []string{es.Key(data.Tier, data.Node, data.Module)}
	case events.RolloutStepEnded:
		return []string{es.Key(data.Tier, data.Node, data.Module)}
	case events.RolloutStepRetried:
		return []string{es.Key(data.Tier, data.Node, data.Module)}
	}
	return nil
}

// expected is what a plain look at the events says of an assignment.
type expected struct {
	Stands          bool
	Build           string
	Assigned, Since time.Time
	Ended           time.Time
}

// checkTold compares the assignments that stand at the end with the plainest reading of the events: the last one that told
// something, and the one since which the module was never away.
func checkTold(t *rapid.T, all []es.Event, values []stored) {
	want := map[string]expected{}
	for _, e := range all {
		if e.Ref.Aggregate != events.AggregateAssignment || e.Backfill {
			continue
		}
		a := want[e.Ref.Key]
		switch data := e.Data.(type) {
		case events.AssignmentAssigned:
			a = arrive(a, data.Build, e.Effective)
		case events.AssignmentMovedIn:
			a = arrive(a, data.Build, e.Effective)
		case events.AssignmentPended:
			a = expected{Build: data.Build, Since: e.Effective}
		case events.AssignmentEnded, events.AssignmentMovedOut:
			a.Stands, a.Ended = false, e.Effective
		}
		want[e.Ref.Key] = a
	}
	have := map[string]expected{}
	stand := newest(values, topology.BucketAssignments)
	for _, key := range slices.Sorted(maps.Keys(stand)) {
		a, err := chain.Decode[chain.Assignment](stand[key])
		if err != nil {
			t.Fatal(err)
		}
		have[key] = expected{Stands: a.Stands(), Build: a.Build, Assigned: a.Assigned, Since: a.Since, Ended: a.Ended}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatalf("assignments (-want +have):\n%s", diff)
	}
}

func arrive(before expected, build string, at time.Time) expected {
	if !before.Stands {
		return expected{Stands: true, Build: build, Assigned: at, Since: at}
	}
	return expected{Stands: true, Build: build, Assigned: before.Assigned, Since: at}
}
