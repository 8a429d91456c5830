package natskv_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/es/project"
)

func collect(t testing.TB, entries iter.Seq2[natskv.Entry, error]) []natskv.Entry {
	t.Helper()
	var out []natskv.Entry
	for e, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func revisions(entries []natskv.Entry) []uint64 {
	out := make([]uint64, len(entries))
	for i, e := range entries {
		out[i] = e.Revision
	}
	return out
}

// TestHistoryIsWhole is case C06: the client's own limit of 64 values is not ours.
func TestHistoryIsWhole(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	fill(t, b, 140, "n1.web", "n1.web-2")
	history := collect(t, b.History(ctx, "n1.web"))
	if len(history) != 70 || history[0].Revision != 1 || history[69].Revision != 139 || !slices.IsSorted(revisions(history)) {
		t.Errorf("%d values, revisions %v", len(history), revisions(history))
	}
	if both := collect(t, b.Values(ctx, "n1.*")); len(both) != 140 || !slices.IsSorted(revisions(both)) {
		t.Errorf("of both keys there are %d values, revisions %v", len(both), revisions(both))
	}
	if none := collect(t, b.History(ctx, "n1")); len(none) != 0 {
		t.Errorf("history of a key that is none: %v", revisions(none))
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(ctx, b.Name())
	if err != nil {
		t.Fatal(err)
	}
	if values, err := kv.History(ctx, "n1.web"); err != nil || len(values) != 70 {
		t.Errorf("the usual client gives %d values, %v", len(values), err)
	}
	if left := consumers(t, nc, b.Name()); left != 0 {
		t.Errorf("%d consumers are left", left)
	}
}

func TestEntriesByFilter(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	if none := collect(t, b.Entries(ctx)); len(none) != 0 {
		t.Errorf("an empty bucket gives %d entries", len(none))
	}
	keys := []string{"n1.web", "n2.web", "n1.db", "n10.web", "n1.web.x", "n1"}
	fill(t, b, 600, keys...)
	for _, c := range []struct {
		filter []string
		want   []string
	}{
		{nil, keys},
		{[]string{"n1.web"}, []string{"n1.web"}},
		{[]string{"n1.*"}, []string{"n1.web", "n1.db"}},
		{[]string{"*.web"}, []string{"n1.web", "n2.web", "n10.web"}},
		{[]string{"n1.>"}, []string{"n1.web", "n1.db", "n1.web.x"}},
		{[]string{"*"}, []string{"n1"}},
		{[]string{"n3.*"}, nil},
		{[]string{"n2.web", "*.db"}, []string{"n2.web", "n1.db"}},
	} {
		var got []string
		for _, e := range collect(t, b.Entries(ctx, c.filter...)) {
			got = append(got, e.Key)
			if e.Revision <= 594 {
				t.Errorf("filter %v: key %s has revision %d, which is not its newest", c.filter, e.Key, e.Revision)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("filter %v (-want +have):\n%s", c.filter, diff)
		}
	}
	for _, filter := range []string{"", "a b", ">.a", "n1.", "*.é"} {
		for _, err := range b.Entries(ctx, filter) {
			if !errors.Is(err, es.ErrName) {
				t.Errorf("filter %q: %v", filter, err)
			}
		}
	}
	if left := consumers(t, nc, b.Name()); left != 0 {
		t.Errorf("%d consumers are left", left)
	}
}

// TestPagesAreComplete is case C32.
func TestPagesAreComplete(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	const keys, page = 50_000, 15_000
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("n%d.web", i)
	}
	fill(t, b, keys, names...)
	fill(t, b, 10, names[:10]...)
	slices.Sort(names)
	var got []string
	for after := ""; ; {
		entries, err := b.Page(ctx, "", after, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Key)
		}
		if len(entries) < page {
			break
		}
		after = entries[page-1].Key
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("%d keys of %d (-want +have):\n%.2000s", len(got), keys, diff)
	}
	// What comes after the first page is in its place on the next one, with its newest value.
	fill(t, b, 3, "n1.web", "n0.a", "n9.z")
	late, err := b.Page(ctx, "", "", 2)
	if err != nil || len(late) != 2 || late[0].Key != "n0.a" || late[1].Key != "n0.web" {
		t.Errorf("the first keys are %+v, %v", late, err)
	}
	fill(t, b, 10, names[:10]...)
	fill(t, b, 10, names[:10]...)
	if first, err := b.Page(ctx, ">", "n1.a", 1); err != nil || len(first) != 1 || first[0].Key != "n1.web" || first[0].Revision <= keys+20 {
		t.Errorf("the page after n1.a: %+v, %v", first, err)
	}
	entries, err := b.Page(ctx, "n1.*", "", 10)
	if err != nil || len(entries) != 1 || entries[0].Key != "n1.web" || entries[0].Revision != one(t, b, "n1.web").Revision {
		t.Errorf("page of n1.*: %+v, %v", entries, err)
	}
	if left := consumers(t, nc, b.Name()); left != 0 {
		t.Errorf("%d consumers are left", left)
	}
}

func TestAllAndFollow(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	fill(t, b, 100, "a", "b")
	if all := collect(t, b.All(ctx, 0)); len(all) != 100 || all[0].Revision != 1 {
		t.Errorf("all: %d values", len(all))
	}
	if all := collect(t, b.All(ctx, 97)); !slices.Equal(revisions(all), []uint64{98, 99, 100}) {
		t.Errorf("after 97: %v", revisions(all))
	}
	if all := collect(t, b.All(ctx, 100)); len(all) != 0 {
		t.Errorf("after the last: %v", revisions(all))
	}
	for e, err := range b.All(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Revision == 3 {
			break
		}
	}

	following, cancel := context.WithCancel(ctx)
	defer cancel()
	var got []uint64
	for e, err := range b.Follow(following, 98) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Revision)
		if e.Revision == 100 {
			fill(t, b, 50, "c")
		}
		if e.Revision == 150 {
			cancel()
		}
	}
	if len(got) != 52 || got[51] != 150 {
		t.Errorf("followed %v", got)
	}
	if left := consumers(t, nc, b.Name()); left != 0 {
		t.Errorf("%d consumers are left", left)
	}
}

func TestFollowOutlivesTheServer(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	b := open(t, bus.Connect(t), small("things"))
	other := open(t, bus.Connect(t), small("things"))
	fill(t, b, 10, "k")
	var got []uint64
	for e, err := range b.Follow(bounded(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Revision)
		if e.Revision == 10 {
			bus.Stop()
			bus.Start(t)
			eventually(t, func() error { _, err := other.State(bounded(t)); return err })
			fill(t, other, 10, "k")
		}
		if e.Revision == 20 {
			break
		}
	}
	if len(got) != 20 {
		t.Errorf("followed %v", got)
	}
}

// eventually tries again until there is no error.
func eventually(t testing.TB, try func() error) {
	t.Helper()
	ctx := bounded(t)
	for {
		err := try()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignMessagesAreNamed(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	fill(t, b, 2, "a")
	if err := nc.Publish("$KV.things.b", []byte("foreign")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if s, err := b.State(ctx); err != nil || s.Last != 3 {
			return errors.Newf("%+v %v", s, err)
		}
		return nil
	})
	fill(t, b, 1, "a")
	if e, err := b.Get(ctx, "b"); !errors.Is(err, project.ErrForeign) || e.Revision != 3 {
		t.Errorf("get: %+v, %v", e, err)
	}
	var foreign, whole []uint64
	for e, err := range b.All(ctx, 0) {
		switch {
		case errors.Is(err, project.ErrForeign):
			foreign = append(foreign, e.Revision)
		case err != nil:
			t.Fatal(err)
		default:
			whole = append(whole, e.Revision)
		}
	}
	if !slices.Equal(foreign, []uint64{3}) || !slices.Equal(whole, []uint64{1, 2, 4}) {
		t.Errorf("foreign %v, whole %v", foreign, whole)
	}
	if _, err := b.Page(ctx, "", "", 10); !errors.Is(err, project.ErrForeign) {
		t.Errorf("page: %v", err)
	}
}

func TestStateCountsWhatIsMissing(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	cfg := small("things")
	cfg.DenyDelete = false
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	s, err := js.CreateStream(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	b, err := natskv.Open(ctx, nc, "things")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, b, 5, "k")
	for _, revision := range []uint64{1, 3} {
		if err := s.DeleteMsg(ctx, revision); err != nil {
			t.Fatal(err)
		}
	}
	if state, err := b.State(ctx); err != nil || state != (natskv.State{Last: 5, Messages: 3, Deleted: 2}) {
		t.Errorf("state %+v, %v", state, err)
	}
}

// one gives the newest value of a key.
func one(t *testing.T, b *natskv.Bucket, key string) natskv.Entry {
	t.Helper()
	e, err := b.Get(bounded(t), key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
