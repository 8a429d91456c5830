package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/internal/topology"
)

// Two processes that name the same people at once give each of them one id.
func TestOneIDPerNameFromManyProcesses(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	js, err := jetstream.New(bus.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "actors"}); err != nil {
		t.Fatal(err)
	}
	const processes, names = 3, 40
	ids := make([][names]string, processes)
	var group sync.WaitGroup
	for p := range processes {
		d, err := dispatch.OpenDirectory(t.Context(), js, "actors")
		if err != nil {
			t.Fatal(err)
		}
		actors, err := dispatch.NewActors(t.Context(), d, newID)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for n := range names {
				id, err := actors.ID(t.Context(), dispatch.Who{Name: name(n)})
				if err != nil {
					t.Errorf("process %d, name %d: %v", p, n, err)
				}
				ids[p][n] = id
			}
		})
	}
	group.Wait()
	for p := range processes {
		if ids[p] != ids[0] {
			t.Errorf("process %d gave %v, another %v", p, ids[p], ids[0])
		}
	}
}

// TestForgottenEverywhere: who is erased by one process is forgotten by the others, and nothing of the name is left in the bucket.
func TestForgottenEverywhere(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	js, err := jetstream.New(bus.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	config := topology.Actors(topology.Options{})
	config.MaxBytes = 1 << 20
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	open := func() (*dispatch.BucketDirectory, *dispatch.Actors) {
		d, err := dispatch.OpenDirectory(t.Context(), js, topology.BucketActors)
		if err != nil {
			t.Fatal(err)
		}
		actors, err := dispatch.NewActors(t.Context(), d, newID)
		if err != nil {
			t.Fatal(err)
		}
		return d, actors
	}
	id := func(a *dispatch.Actors) string {
		t.Helper()
		id, err := a.ID(t.Context(), dispatch.Who{Name: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first, here := open()
	var copies []uint64
	first.EraseCopies = func(_ context.Context, sequence uint64) error {
		copies = append(copies, sequence)
		return nil
	}
	before := id(here)
	second, there := open()
	following, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- second.Follow(following, there) }()
	if found := id(there); found != before {
		t.Fatalf("another process gives the id %s, want %s", found, before)
	}

	for range 2 { // the second time there is nothing left to erase
		if err := here.Forget(t.Context(), before, "request 12"); err != nil {
			t.Fatal(err)
		}
	}
	if len(copies) != 1 || copies[0] != 1 {
		t.Errorf("copies were erased at %v, want at 1 once", copies)
	}
	for deadline := time.Now().Add(time.Minute); id(there) == before; {
		if time.Now().After(deadline) {
			t.Fatal("another process still gives the forgotten id")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if found := id(here); found == before || found != id(there) {
		t.Errorf("afterwards the ids are %s and %s, the forgotten one was %s", found, id(there), before)
	}
}

// Whoever follows the directory stops without a word when the server is away: there is nobody to tell.
func TestStopFollowingWhileTheBusIsAway(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	config := topology.Actors(topology.Options{})
	config.MaxBytes = 1 << 20
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	d, err := dispatch.OpenDirectory(t.Context(), js, topology.BucketActors)
	if err != nil {
		t.Fatal(err)
	}
	actors, err := dispatch.NewActors(t.Context(), d, newID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	// The library ends a subscription with its context too: whether it or Follow comes first is left to chance.
	const followers = 50
	ended := make(chan error)
	for range followers {
		go func() { ended <- d.Follow(ctx, actors) }()
	}
	other, err := dispatch.OpenDirectory(t.Context(), js, topology.BucketActors)
	if err != nil {
		t.Fatal(err)
	}
	id, err := actors.ID(t.Context(), dispatch.Who{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Erase(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the directory is followed", func() bool {
		again, err := actors.ID(t.Context(), dispatch.Who{Name: "ann"})
		return err == nil && again != id
	})
	// Each has a consumer of its own.
	eventually(t, "all follow", func() bool {
		s, err := js.Stream(t.Context(), config.Name)
		return err == nil && s.CachedInfo().State.Consumers >= followers
	})
	bus.Stop()
	eventually(t, "the bus is away", func() bool { return !nc.IsConnected() })
	stop()
	for range followers {
		// One may not have heard yet that its watch was made.
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
