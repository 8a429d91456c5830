package dispatch_test

import (
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/dispatch"
	"catenary/es/estest"
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
