package chain_test

import (
	"fmt"
	"testing"
	"time"

	"catenary/chain"
	"catenary/es/project"
	"catenary/internal/topology"
)

func TestActorName(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	now := noon
	r := chain.NewReader(chain.Config{Open: b.open, Clock: func() time.Time { return now }})
	write := func(id, value string) { b.put(topology.BucketActors, id, []byte(value), project.Meta{}) }
	check := func(when, id, want string) {
		t.Helper()
		if got, err := r.ActorName(t.Context(), id); err != nil || got != want {
			t.Errorf("%s: %s is %q with error %v, want %q", when, id, got, err, want)
		}
	}
	write("a1", `{"name":"Ann Ä","account":"OPS"}`)
	write("a2", `{"account":"OPS"}`)
	check("with a name", "a1", "Ann Ä")
	check("without a name", "a2", "a2")
	check("without an entry", "a3", "a3")
	check("nobody", "", "")

	write("a1", ``)
	check("just erased, still remembered", "a1", "Ann Ä")
	now = now.Add(30 * time.Second)
	check("erased", "a1", "a1")
	write("a3", `{"name":"Cem"}`)
	now = now.Add(30 * time.Second)
	check("named since", "a3", "Cem")

	write("a4", `"Dora"`)
	if name, err := r.ActorName(t.Context(), "a4"); err == nil {
		t.Errorf("an entry that is not one of ours gave %q", name)
	}
}

func TestActorNamesAreBounded(t *testing.T) {
	t.Parallel()
	r := newBuckets().reader()
	for i := range 10_050 {
		id := fmt.Sprintf("a%d", i)
		if name, err := r.ActorName(t.Context(), id); err != nil || name != id {
			t.Fatalf("%s is %q with error %v", id, name, err)
		}
	}
}
