package natskv_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
)

func TestPutStoresInOrder(t *testing.T) {
	t.Parallel()
	b, _ := bucket(t)
	ctx := bounded(t)
	if _, err := b.Tail(ctx); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("tail of an empty bucket: %v", err)
	}
	fill(t, b, 5000, "n1.web", "n2.web", "n1.db")
	tail, err := b.Tail(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := natskv.Entry{Key: "n2.web", Value: []byte(`{"n":5000}`), Revision: 5000, Meta: metaOf(5000), Stored: tail.Stored}
	if diff := cmp.Diff(want, tail); diff != "" || tail.Stored.IsZero() {
		t.Errorf("tail (-want +have):\n%s", diff)
	}
	state, err := b.State(ctx)
	if err != nil || state != (natskv.State{Last: 5000, Messages: 5000}) {
		t.Errorf("state %+v, %v", state, err)
	}
}

func TestPutRefusedTakesTheRestWithIt(t *testing.T) {
	t.Parallel()
	b, _ := bucket(t)
	ctx := bounded(t)
	var pending []es.Pending
	for i := range uint64(100) {
		after := i
		if i == 40 {
			after = 7 // a wrong guard in the middle of the pipeline
		}
		pending = append(pending, b.Put(ctx, after, "k", nil, metaOf(i+1)))
	}
	for i, p := range pending {
		err := es.Wait(ctx, p)
		if i < 40 && err != nil {
			t.Errorf("put %d: %v", i+1, err)
		}
		if i >= 40 && !errors.Is(err, es.ErrConflict) {
			t.Errorf("put %d: %v, want a conflict", i+1, err)
		}
	}
	if tail, err := b.Tail(ctx); err != nil || tail.Revision != 40 {
		t.Errorf("the bucket ends at %d, %v, want 40", tail.Revision, err)
	}
}

func TestPutByTwo(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	first := open(t, bus.Connect(t), small("things"))
	second := open(t, bus.Connect(t), small("things"))
	ctx := bounded(t)
	const values = 500
	var stored [2][values]bool
	var group sync.WaitGroup
	for who, b := range []*natskv.Bucket{first, second} {
		group.Go(func() {
			var pending []es.Pending
			for i := range uint64(values) {
				pending = append(pending, b.Put(ctx, i, fmt.Sprint("by", who), nil, metaOf(i+1)))
			}
			for i, p := range pending {
				err := es.Wait(ctx, p)
				if stored[who][i] = err == nil; err != nil && !errors.Is(err, es.ErrConflict) {
					t.Errorf("put %d by %d: %v", i+1, who, err)
				}
			}
		})
	}
	group.Wait()
	for e, err := range first.All(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		i := e.Revision - 1
		if stored[0][i] == stored[1][i] || (e.Key == "by0") != stored[0][i] {
			t.Errorf("value %d is of %s, the first was told %v, the second %v", e.Revision, e.Key, stored[0][i], stored[1][i])
		}
	}
	if s, err := first.State(ctx); err != nil || s.Last != values {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestPutChecksKeys is case D11 for buckets: nothing that the server would close the connection on is sent.
func TestPutChecksKeys(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	for _, c := range []struct {
		key  string
		want error
	}{
		{"", es.ErrName}, {".a", es.ErrName}, {"a.", es.ErrName}, {"a..b", es.ErrName}, {"a b", es.ErrName}, {"ä", es.ErrName},
		{"a*", es.ErrName}, {">", es.ErrName}, {strings.Repeat("x", 5000), es.ErrTooLarge},
	} {
		if err := es.Wait(ctx, b.Put(ctx, 0, c.key, nil, metaOf(1))); !errors.Is(err, c.want) {
			t.Errorf("put key %.10q: %v, want one marked %v", c.key, err, c.want)
		}
		if _, err := b.Get(ctx, c.key); !errors.Is(err, c.want) {
			t.Errorf("get key %.10q: %v, want one marked %v", c.key, err, c.want)
		}
		for _, err := range b.History(ctx, c.key) {
			if !errors.Is(err, c.want) {
				t.Errorf("history of key %.10q: %v, want one marked %v", c.key, err, c.want)
			}
		}
	}
	key := es.Key("a~b", "節点", "a..b")
	if err := es.Wait(ctx, b.Put(ctx, 0, key, []byte("v"), metaOf(1))); err != nil {
		t.Errorf("put key %s: %v", key, err)
	}
	if e, err := b.Get(ctx, key); err != nil || e.Key != key {
		t.Errorf("get key %s: %+v, %v", key, e, err)
	}
	if nc.Stats().Reconnects != 0 {
		t.Error("the connection was lost")
	}
}

// TestPutTooLarge is case D12 for buckets.
func TestPutTooLarge(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	for _, size := range []int{1<<20 + 1, 5 << 20} {
		if err := es.Wait(ctx, b.Put(ctx, 0, "k", bytes.Repeat([]byte("x"), size), metaOf(1))); !errors.Is(err, es.ErrTooLarge) {
			t.Errorf("%d bytes: %v, want one marked too large", size, err)
		}
	}
	if err := es.Wait(ctx, b.Put(ctx, 0, "k", bytes.Repeat([]byte("x"), 512<<10), metaOf(1))); err != nil {
		t.Errorf("half a megabyte: %v", err)
	}
	if nc.Stats().Reconnects != 0 {
		t.Error("the connection was lost")
	}
}

func TestPutWithoutABucket(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	b := open(t, nc, small("things"))
	ctx := bounded(t)
	fill(t, b, 1, "k")
	bus.Stop()
	if err := es.Wait(ctx, b.Put(ctx, 1, "k", nil, metaOf(2))); !errors.IsAny(err, es.ErrUnclear, es.ErrUnavailable) {
		t.Errorf("put without a server: %v", err)
	}
	nc.Close()
	if err := es.Wait(ctx, b.Put(ctx, 1, "k", nil, metaOf(2))); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("put without a connection: %v", err)
	}
	if _, err := b.Tail(ctx); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("tail without a connection: %v", err)
	}
	for _, err := range b.All(ctx, 0) {
		if !errors.Is(err, es.ErrUnavailable) {
			t.Errorf("read without a connection: %v", err)
		}
	}
}
