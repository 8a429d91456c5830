package chain_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/topology"
)

// realBuckets are buckets on a real server, written as a projector does.
type realBuckets struct {
	t      *testing.T
	open   func(ctx context.Context, bucket string) (*natskv.Bucket, error)
	actors *natskv.KeyValue
	opened map[string]*natskv.Bucket
	last   map[string]uint64
}

func startBuckets(t *testing.T, names ...string) (*realBuckets, *chain.Reader) {
	t.Helper()
	nc := estest.Server(t, false).Connect(t)
	for _, name := range names {
		if err := natskv.Ensure(t.Context(), nc, topology.Bucket(name, topology.Options{BucketBytes: 64 << 20})); err != nil {
			t.Fatal(err)
		}
	}
	if err := natskv.Ensure(t.Context(), nc, topology.Actors(topology.Options{})); err != nil {
		t.Fatal(err)
	}
	if _, err := natskv.OpenGenerations(t.Context(), nc, topology.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	actors, err := natskv.OpenKeyValue(t.Context(), nc, topology.BucketActors)
	if err != nil {
		t.Fatal(err)
	}
	b := &realBuckets{t: t, actors: actors, opened: map[string]*natskv.Bucket{}, last: map[string]uint64{}}
	b.open = func(ctx context.Context, bucket string) (*natskv.Bucket, error) { return natskv.Open(ctx, nc, bucket) }
	return b, chain.NewReader(chain.Config{Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return b.open(ctx, bucket) }})
}

// hand hands a value over without waiting for its answer.
func (b *realBuckets) hand(bucket, key string, value []byte, meta project.Meta) es.Pending {
	b.t.Helper()
	kv, ok := b.opened[bucket]
	if !ok {
		var err error
		if kv, err = b.open(b.t.Context(), bucket); err != nil {
			b.t.Fatal(err)
		}
		b.opened[bucket] = kv
	}
	b.last[bucket]++
	return kv.Put(b.t.Context(), b.last[bucket]-1, key, value, meta)
}

func (b *realBuckets) put(bucket, key string, value []byte, meta project.Meta) {
	b.t.Helper()
	if err := es.Wait(b.t.Context(), b.hand(bucket, key, value, meta)); err != nil {
		b.t.Fatal(err)
	}
}

func TestReaderOverARealBus(t *testing.T) {
	t.Parallel()
	b, r := startBuckets(t, topology.BucketAssignments, topology.BucketBackfill, topology.BucketNodes)
	ctx := t.Context()
	const node, module = "節点 ä", "a.b/c@1:2"
	key := es.Key(node, module)
	said := events.Raw("{ \"a\": 1.0 }\n")
	// 70 values of one key: case C06.
	for i := range uint64(70) {
		a := chain.Assignment{Node: node, Module: module, Build: fmt.Sprint("b", i), Provisioning: said}
		b.put(topology.BucketAssignments, key, encoded(a), meta(i+1, int(i)))
	}
	b.put(topology.BucketAssignments, "n1.old", encoded(chain.Assignment{Node: "n1", Module: "old", Ended: noon}), meta(71, 0))
	m := meta(72, 3)
	m.Backfill, m.Effective, m.OnBehalfOf, m.Type = true, m.Effective.Add(1), "p 9", events.TypeAssignmentAssigned
	added := chain.Assignment{Node: node, Module: module, Build: "added"}
	b.put(topology.BucketBackfill, chain.Assignments.BackfillKey(key), encoded(added), m)

	if err := r.WaitRevision(ctx, topology.BucketAssignments, 71); err != nil {
		t.Fatal(err)
	}
	got, err := chain.Get(ctx, r, chain.Assignments, node, module)
	if err != nil {
		t.Fatal(err)
	}
	if got.Key != key || got.Revision != 70 || got.Sequence != 70 || got.Value.Build != "b69" || string(got.Value.Provisioning) != string(said) {
		t.Errorf("newest is %+v", got)
	}
	changes, err := chain.History(ctx, r, chain.Assignments, node, module)
	if err != nil || len(changes) != 71 {
		t.Fatalf("%d values with error %v", len(changes), err)
	}
	want := chain.Change[chain.Assignment]{
		Sequence: 72, Recorded: noon.AddDate(0, 0, 1), Effective: hour(3).Add(1), Actor: "a1", OnBehalfOf: "p 9",
		Type: events.TypeAssignmentAssigned, Backfill: true, Value: added, Raw: encoded(added),
	}
	if diff := cmp.Diff(want, changes[4]); diff != "" {
		t.Errorf("what was added (-want +got):\n%s", diff)
	}
	then, err := chain.AsOf(ctx, r, chain.Assignments, hour(3).Add(1), node, module)
	if err != nil || then.Value.Build != "added" {
		t.Errorf("as of then: %+v with error %v", then.Value, err)
	}
	for q, n := range map[chain.Query]int{{}: 2, {Node: node}: 1, {Module: module}: 1, {Node: "n1", Module: module}: 0} {
		if list, err := chain.ListAsOf(ctx, r, chain.Assignments, hour(1000), q); err != nil || len(list) != n {
			t.Errorf("%+v gives %d as of the end with error %v, want %d", q, len(list), err, n)
		}
	}
	for q, n := range map[chain.Query]int{
		{}: 1, {All: true}: 2, {Node: node}: 1, {Module: "old"}: 0, {Module: "old", All: true}: 1, {Node: "n1", Module: module}: 0,
	} {
		for _, limit := range []int{0, 5} {
			q.Limit = limit
			page, err := chain.List(ctx, r, chain.Assignments, q)
			if err != nil || len(page.Entries) != n || page.Cursor != "" {
				t.Errorf("list %+v gives %d entries with error %v, want %d", q, len(page.Entries), err, n)
			}
		}
	}
	if _, err := chain.List(ctx, r, chain.Nodes, chain.Query{Limit: 3}); err != nil {
		t.Errorf("an empty bucket: %v", err)
	}
}

func TestActorNameOverARealBus(t *testing.T) {
	t.Parallel()
	b, r := startBuckets(t)
	if err := b.actors.Create(t.Context(), "a1", []byte(`{"name":"Ann","account":"OPS"}`)); err != nil {
		t.Fatal(err)
	}
	if err := b.actors.Set(t.Context(), "a2", nil); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a1": "Ann", "a2": "a2", "a3": "a3"} {
		if name, err := r.ActorName(t.Context(), id); err != nil || name != want {
			t.Errorf("%s is %q with error %v, want %q", id, name, err, want)
		}
	}
}

// TestPagesOverARealBus reads many keys in pages while half of them do not stand.
func TestPagesOverARealBus(t *testing.T) {
	t.Parallel()
	b, r := startBuckets(t, topology.BucketNodes)
	const nodes = 3000
	var last es.Pending
	for i := range uint64(nodes) {
		n := chain.Node{Node: fmt.Sprintf("n%d", i)}
		if i%2 == 1 {
			n.Retired = noon
		}
		last = b.hand(topology.BucketNodes, chain.Nodes.KeyOf(n), encoded(n), meta(i+1, 0))
	}
	if err := es.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	whole, err := chain.List(t.Context(), r, chain.Nodes, chain.Query{})
	if err != nil || len(whole.Entries) != nodes/2 {
		t.Fatalf("%d entries with error %v", len(whole.Entries), err)
	}
	var paged []chain.Entry[chain.Node]
	for q := (chain.Query{Limit: 700}); ; {
		page, err := chain.List(t.Context(), r, chain.Nodes, q)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, page.Entries...)
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	if diff := cmp.Diff(whole.Entries, paged); diff != "" {
		t.Errorf("pages (-whole +pages):\n%s", diff)
	}
}
