package project_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/internal/topology"
)

// TestOverAServerThatRestarts has stream, buckets and marks on a real server, which goes away and comes back while the
// projector works.
func TestOverAServerThatRestarts(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	ctx := bounded(t)
	if err := natsstore.Ensure(ctx, nc, topology.Options{EventStoreBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	s, err := natsstore.Open(ctx, nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := natskv.Ensure(ctx, nc, topology.Marks(topology.Options{})); err != nil {
		t.Fatal(err)
	}
	marks, err := natskv.OpenKeyValue(ctx, nc, topology.BucketMarks)
	if err != nil {
		t.Fatal(err)
	}
	a, b := onServer(t, bus, "sums"), onServer(t, bus, "everything")
	cfg := config(s, spec(newSums, a), spec(newEverything, b))
	cfg.Marks = marks
	r := start(t, cfg)
	tail := uint64(0)
	for range 3 {
		tail = projecttest.Append(t, newRegistry(), s, append(history(300), thing("t1", looked{}))...)
		if _, err := r.Wait(ctx, tail-200); err != nil {
			t.Fatal(err)
		}
		bus.Stop()
		bus.Start(t)
		awaitStore(t, s)
	}
	r.wait(tail)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	same(t, s, newSums, a)
	same(t, s, newEverything, b)
	if _, err := marks.Get(ctx, "sums"); err != nil {
		t.Errorf("no mark was left: %v", err)
	}
	cfg.Views = []project.ViewSpec{spec(newSums, a), spec(newEverything, b)}
	projecttest.Run(t, cfg, tail)
}

// awaitStore waits until the store can be reached again.
func awaitStore(t testing.TB, s es.Store) {
	t.Helper()
	for ctx := bounded(t); ; breathe() {
		_, err := s.Tail(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil || !errors.Is(err, es.ErrUnavailable) {
			t.Fatal(fmt.Errorf("the server does not come back: %w", err))
		}
	}
}
