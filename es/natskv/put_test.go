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
	"catenary/es/project"
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
	// One that is given up while the connection ends is as unclear as one without a server.
	if err := es.Wait(ctx, b.Put(ctx, 1, "k", nil, metaOf(2))); !errors.IsAny(err, es.ErrUnclear, es.ErrUnavailable) {
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

// placed gives values to stand after a revision, whose keys say who puts them.
func placed(after uint64, n int, who string) []project.Placed {
	values := make([]project.Placed, n)
	for i := range values {
		revision := after + uint64(i) + 1
		values[i] = project.Placed{Key: fmt.Sprintf("%s.k%d", who, revision%7), Data: fmt.Appendf(nil, `{"n":%d}`, revision), Meta: metaOf(revision)}
	}
	return values
}

// Groups of all sizes and single values follow each other without waiting, and stand in that order.
func TestPutAllStoresInOrder(t *testing.T) {
	t.Parallel()
	b, _ := bucket(t)
	ctx := bounded(t)
	var pending []es.Pending
	var want []project.Placed
	for i := range 70 {
		after := uint64(len(want))
		values := placed(after, 1+i%b.MaxGroup(), "a")
		want = append(want, values...)
		if i%5 == 0 {
			want = want[:after+1]
			pending = append(pending, b.Put(ctx, after, values[0].Key, values[0].Data, values[0].Meta))
			continue
		}
		pending = append(pending, b.PutAll(ctx, after, values))
	}
	for i, p := range pending {
		if err := es.Wait(ctx, p); err != nil {
			t.Fatalf("put %d: %v", i+1, err)
		}
	}
	got := collect(t, b.All(ctx, 0))
	if len(got) != len(want) {
		t.Fatalf("%d values stand, want %d", len(got), len(want))
	}
	for i, e := range got {
		w := want[i]
		if e.Key != w.Key || !bytes.Equal(e.Value, w.Data) || !e.Meta.Equal(w.Meta) || e.Revision != uint64(i)+1 {
			t.Fatalf("value %d is %+v, want %+v", i+1, e, w)
		}
	}
}

// A group ends with the first value that is refused, wherever that is, and whoever was faster. What was told to be stored is, each
// value is of one of the two, and of a group that failed only the first ones stand.
func TestPutAllByTwo(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	buckets := []*natskv.Bucket{open(t, bus.Connect(t), small("things")), open(t, bus.Connect(t), small("things"))}
	ctx := bounded(t)
	const values = 2000
	type group struct {
		after  uint64
		values int
		err    error
	}
	put := make([][]group, len(buckets))
	var both sync.WaitGroup
	for who, b := range buckets {
		both.Go(func() {
			for done := uint64(0); done < values; {
				// The two put groups of different sizes, so that each refuses the other in the middle of one.
				g := group{after: done, values: 10 + 7*who}
				g.err = es.Wait(ctx, b.PutAll(ctx, g.after, placed(g.after, g.values, fmt.Sprint("by", who))))
				if g.err != nil && !errors.Is(g.err, es.ErrConflict) {
					t.Errorf("group after %d by %d: %v", g.after, who, g.err)
				}
				put[who] = append(put[who], g)
				tail, err := b.Tail(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				done = tail.Revision
			}
		})
	}
	both.Wait()
	stands := collect(t, buckets[0].All(ctx, 0))
	stood := make([]int, len(stands)+1) // how often a value was accounted for
	for who, groups := range put {
		for _, g := range groups {
			first := 0
			for first < g.values {
				at := g.after + uint64(first)
				if at >= uint64(len(stands)) || !strings.HasPrefix(stands[at].Key, fmt.Sprintf("by%d.", who)) {
					break
				}
				stood[at]++
				first++
			}
			if g.err == nil && first != g.values {
				t.Errorf("of the group after %d by %d, told to be stored, %d of %d values stand", g.after, who, first, g.values)
			}
		}
	}
	for i, e := range stands {
		if e.Meta.Position.Sequence != e.Revision {
			t.Errorf("value %d is the one made for place %d", e.Revision, e.Meta.Position.Sequence)
		}
		if stood[i] == 0 {
			t.Errorf("value %d (key %s) stands, and is no first one of any group: something before it was refused", e.Revision, e.Key)
		}
	}
}

// A rival's value in the place of a group's own refuses the rest, even where the counts would fit again.
func TestPutAllIsRefusedInTheMiddle(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	fill(t, b, 3, "k")
	for _, after := range []uint64{2, 4} {
		if err := es.Wait(ctx, b.PutAll(ctx, after, placed(after, 10, "late"))); !errors.Is(err, es.ErrConflict) {
			t.Errorf("a group after value %d of 3: %v", after, err)
		}
	}
	// The rival speaks between two messages of the group.
	last := uint64(3)
	b.Before(func(put int) {
		if put == 4 {
			if err := nc.Publish("$KV.things.rival", []byte("{}")); err != nil {
				t.Error(err)
			}
		}
	})
	err := es.Wait(ctx, b.PutAll(ctx, last, placed(last, 10, "ours")))
	if !errors.Is(err, es.ErrConflict) || !strings.Contains(fmt.Sprint(err), "4 of 10") {
		t.Errorf("a group that a rival spoke into: %v", err)
	}
	if state, err := b.State(ctx); err != nil || state.Last != last+5 {
		t.Errorf("%+v stand, %v, want 4 of the group and the rival's", state, err)
	}
	if err := es.Wait(ctx, b.PutAll(ctx, last+5, placed(last+5, 10, "again"))); err != nil {
		t.Errorf("the next group: %v", err)
	}
}

// Nothing is sent of a group that holds a value which can never be stored.
func TestPutAllChecksValues(t *testing.T) {
	t.Parallel()
	b, _ := bucket(t)
	ctx := bounded(t)
	for name, c := range map[string]struct {
		spoil func(*project.Placed)
		want  error
	}{
		"a key":         {func(v *project.Placed) { v.Key = "a b" }, es.ErrName},
		"a large value": {func(v *project.Placed) { v.Data = make([]byte, 2<<20) }, es.ErrTooLarge},
	} {
		values := placed(0, 10, "a")
		c.spoil(&values[5])
		if err := es.Wait(ctx, b.PutAll(ctx, 0, values)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want one marked %v", name, err, c.want)
		}
	}
	if err := es.Wait(ctx, b.PutAll(ctx, 0, placed(0, b.MaxGroup()+1, "a"))); err == nil {
		t.Error("more values than it takes at once were taken")
	}
	if state, err := b.State(ctx); err != nil || state.Last != 0 {
		t.Errorf("%+v stand, %v, want none", state, err)
	}
}

// A bucket that is full says so in the middle of a group too.
func TestPutAllIntoAFullBucket(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	cfg := small("things")
	cfg.MaxBytes = 8 << 10
	b := open(t, nc, cfg)
	ctx := bounded(t)
	for after := uint64(0); ; {
		err := es.Wait(ctx, b.PutAll(ctx, after, placed(after, 10, "a")))
		if err == nil {
			after += 10
			continue
		}
		if !errors.Is(err, es.ErrFull) {
			t.Errorf("a full bucket: %v", err)
		}
		break
	}
	for i, e := range collect(t, b.All(ctx, 0)) {
		if e.Meta.Position.Sequence != uint64(i)+1 {
			t.Errorf("value %d is the one made for place %d", i+1, e.Meta.Position.Sequence)
		}
	}
}

// A server that goes away under groups leaves the first ones of them, and none twice.
func TestPutAllWhenTheServerGoes(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	b := open(t, nc, small("things"))
	ctx := bounded(t)
	fill(t, b, 1, "first.k")
	var pending []es.Pending
	for i := range uint64(50) {
		pending = append(pending, b.PutAll(ctx, 1+20*i, placed(1+20*i, 20, "a")))
	}
	bus.Stop()
	for i, p := range pending {
		if err := es.Wait(ctx, p); err != nil && !errors.IsAny(err, es.ErrUnclear, es.ErrUnavailable, es.ErrConflict) {
			t.Errorf("group %d: %v", i+1, err)
		}
	}
	bus.Start(t)
	tail, err := b.Tail(ctx)
	for err != nil && ctx.Err() == nil {
		tail, err = b.Tail(ctx)
	}
	for i, e := range collect(t, b.All(ctx, 0)) {
		if e.Meta.Position.Sequence != uint64(i)+1 {
			t.Fatalf("value %d is the one made for place %d", i+1, e.Meta.Position.Sequence)
		}
	}
	for after := tail.Revision; after < 1001; after += 20 {
		if err := es.Wait(ctx, b.PutAll(ctx, after, placed(after, 20, "a"))); err != nil {
			t.Fatalf("the group after %d, once the server is there again: %v", after, err)
		}
	}
}

// A bucket of an older version takes values one by one until it is made sure of.
func TestPutAllNeedsBatches(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	old := small("things")
	old.AllowBatchPublish = false
	if b := open(t, nc, old); b.MaxGroup() != 1 {
		t.Errorf("a bucket without batches takes %d values at once", b.MaxGroup())
	}
	b := open(t, nc, small("things"))
	if b.MaxGroup() < 2 {
		t.Error("the bucket takes no batches after it was made sure of")
	}
	ctx := bounded(t)
	if err := es.Wait(ctx, b.PutAll(ctx, 0, placed(0, 10, "a"))); err != nil {
		t.Error(err)
	}
}
