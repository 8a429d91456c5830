package natskv_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/internal/topology"
)

func TestKeyValue(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	ctx := bounded(t)
	if err := natskv.Ensure(ctx, nc, topology.Actors(topology.Options{})); err != nil {
		t.Fatal(err)
	}
	kv, err := natskv.OpenKeyValue(ctx, nc, topology.BucketActors)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Get(ctx, "a1"); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("get of nothing: %v", err)
	}
	if err := kv.Create(ctx, "a1", []byte("Ann")); err != nil {
		t.Fatal(err)
	}
	if err := kv.Create(ctx, "a1", []byte("Bob")); !errors.Is(err, es.ErrConflict) {
		t.Errorf("created again: %v", err)
	}
	if err := kv.Set(ctx, "a2", []byte("Cem")); err != nil {
		t.Fatal(err)
	}

	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen []string
	for r, err := range kv.Watch(watching) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, r.Key+"="+string(r.Value))
		switch len(seen) {
		case 2:
			if err := kv.Set(ctx, "a1", nil); err != nil { // a person is erased
				t.Fatal(err)
			}
		case 3:
			cancel()
		}
	}
	if diff := cmp.Diff([]string{"a1=Ann", "a2=Cem", "a1="}, seen); diff != "" {
		t.Errorf("watched (-want +have):\n%s", diff)
	}
	if v, err := kv.Get(ctx, "a1"); err != nil || len(v) != 0 {
		t.Errorf("erased: %q, %v", v, err)
	}
	if err := kv.Create(ctx, "a1", []byte("Bob")); !errors.Is(err, es.ErrConflict) {
		t.Errorf("an erased entry was created again: %v", err)
	}
	b, err := natskv.Open(ctx, nc, topology.BucketActors)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := b.Get(ctx, "a2"); err != nil || string(e.Value) != "Cem" {
		t.Errorf("read as a bucket: %+v, %v", e, err)
	}
	if history := collect(t, b.History(ctx, "a1")); len(history) != 1 {
		t.Errorf("%d values of an erased entry are left", len(history))
	}

	if err := kv.Set(ctx, "a b", nil); !errors.Is(err, es.ErrName) {
		t.Errorf("a bad key: %v", err)
	}
	if err := kv.Set(ctx, "a1", []byte(strings.Repeat("x", 2<<20))); !errors.Is(err, es.ErrTooLarge) {
		t.Errorf("a large value: %v", err)
	}
	nc.Close()
	if err := kv.Set(ctx, "a1", nil); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("without a connection: %v", err)
	}
}
