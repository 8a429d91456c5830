package natskv_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"

	"catenary/embedded"
	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/internal/topology"
)

// TestOverAClusterThatLosesItsLeader kills the node that leads the bucket, in the middle of pipelined puts: each
// value is stored once, and what is read is complete.
func TestOverAClusterThatLosesItsLeader(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	cluster, err := embedded.StartCluster(ctx, embedded.ClusterConfig{
		StoreDir: t.TempDir(), Durability: embedded.DurabilityInterval, MaxStoreBytes: 4 << 30, EventStoreBytes: 64 << 20, BucketBytes: 64 << 20,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Shutdown(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	nc, err := cluster.Ledger(nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b := open(t, nc, topology.Bucket("things", topology.Options{Replicas: 3, BucketBytes: 64 << 20}))
	registry := es.NewRegistry(es.Msgpack{})
	es.Register[told](registry, "thing.told.v1")
	store := memstore.New(memstore.Config{})
	runner, err := project.New(project.Config{Store: store, Registry: registry, Views: []project.ViewSpec{{New: newCounts, Bucket: b}}})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(running) }()
	var facts []projecttest.Fact
	for i := range 3000 {
		facts = append(facts, projecttest.Fact{Ref: es.Ref{Aggregate: "thing", Key: fmt.Sprint("t", i%700)}, Data: told{}})
	}
	tail := projecttest.Append(t, registry, store, facts...)
	if _, err := runner.Wait(ctx, 500); err != nil {
		t.Fatal(err)
	}
	leader, ok := cluster.Leader("KV_things")
	if !ok {
		t.Fatal("the bucket has no leader")
	}
	if err := cluster.StopNode(leader); err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Wait(ctx, tail); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartNode(ctx, leader); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, b.Entries(ctx)); len(got) != 700 {
		t.Errorf("%d keys are read", len(got))
	}
	if got := collect(t, b.All(ctx, 0)); uint64(len(got)) != tail {
		t.Errorf("%d values are read of %d", len(got), tail)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	report, err := project.Verify(ctx, project.Verification{
		Store: store, Registry: registry,
		NewViews: func() []project.View { return []project.View{newCounts()} },
		Bucket:   func(string) (project.Bucket, error) { return b, nil },
	})
	if err != nil || !report.OK() || report.Buckets[0].Values != tail {
		t.Errorf("report %+v, %v", report, err)
	}
	fence(t, nc, 3)
}
