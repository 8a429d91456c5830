package projections_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/internal/topology"
	"catenary/projections"
)

// TestFromEventsToAnswers is the whole way: events, the views under a projector, real buckets, and the reader over them.
func TestFromEventsToAnswers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	nc := estest.Server(t, false).Connect(t)
	open := func(bucket string) (project.Bucket, error) {
		if err := natskv.Ensure(ctx, nc, topology.Bucket(bucket, topology.Options{BucketBytes: 64 << 20})); err != nil {
			return nil, err
		}
		return natskv.Open(ctx, nc, bucket)
	}
	specs, err := project.Specs(projections.All, open)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := natskv.OpenGenerations(t.Context(), nc, topology.Options{}, nil); err != nil {
		t.Fatal(err)
	}

	at := projecttest.Recorded(0)
	day := func(n int) projecttest.Fact {
		return projecttest.Fact{Effective: at.AddDate(0, 0, n), Actor: "a1", OnBehalfOf: "p1"}
	}
	shop := func(f projecttest.Fact, data any) projecttest.Fact {
		f.Ref, f.Data = es.Ref{Aggregate: events.AggregateAssignment, Key: "n1.shop"}, data
		return f
	}
	told := func(version string) events.Told {
		return events.Told{Node: "n1", Module: "shop", Reference: events.Reference{Package: &events.Package{Name: "shop", Version: version}}}
	}
	late := shop(day(5), events.AssignmentAssigned{Told: told("1.3")})
	late.Backfill = true
	store := memstore.New(memstore.Config{})
	tail := projecttest.Append(t, events.Registry(), store,
		projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateNode, Key: "n1"}, Data: events.NodeRegistered{Node: "n1", ManagedBy: events.ManagedByExternal}},
		projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateModule, Key: "shop"}, Data: events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: "shop"}}},
		shop(day(1), events.AssignmentAssigned{Told: told("1.20")}),
		shop(day(9), events.AssignmentAssigned{Told: told("0362525")}),
		late,
		shop(day(12), events.AssignmentEnded{Node: "n1", Module: "shop"}),
	)
	projecttest.Run(t, project.Config{Store: store, Registry: events.Registry(), Views: specs}, tail)

	r := chain.NewReader(chain.Config{Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return natskv.Open(ctx, nc, bucket) }})
	answers := map[int]string{}
	for n := 1; n <= 13; n++ {
		c, err := chain.AsOf(ctx, r, chain.Assignments, at.AddDate(0, 0, n), "n1", "shop")
		if err != nil {
			t.Fatal(err)
		}
		if c.Value.Stands() {
			answers[n] = c.Value.Package.Version
		}
		if !c.Value.Assigned.Equal(at.AddDate(0, 0, 1)) || c.OnBehalfOf != "p1" {
			t.Errorf("day %d: it came at %v, on behalf of %s", n, c.Value.Assigned, c.OnBehalfOf)
		}
	}
	want := map[int]string{
		1: "1.20", 2: "1.20", 3: "1.20", 4: "1.20", 5: "1.3", 6: "1.3", 7: "1.3", 8: "1.3", 9: "0362525", 10: "0362525", 11: "0362525",
	}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("what stood by day (-want +got):\n%s", diff)
	}
	if page, err := chain.List(ctx, r, chain.Assignments, chain.Query{}); err != nil || len(page.Entries) != 0 {
		t.Errorf("standing at the end: %+v with error %v", page.Entries, err)
	}
	if e, err := chain.Get(ctx, r, chain.Nodes, "n1"); err != nil || e.Value.ManagedBy != events.ManagedByExternal {
		t.Errorf("node is %+v with error %v", e.Value, err)
	}
}
