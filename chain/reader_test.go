package chain_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

func TestGet(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Assignments, 7, 0, chain.Assignment{Node: "a.b", Module: "x/y", Build: "b1"})
	put(b, chain.Assignments, 9, 1, chain.Assignment{Node: "a.b", Module: "x/y", Build: "b2", Provisioning: events.Raw(`{ "a": 1 }`)})
	put(b, chain.Publications, 3, 0, chain.Published{Reference: events.Reference{Package: &events.Package{Name: "shop", Version: "1.20"}}})
	r := b.reader()

	got, err := chain.Get(t.Context(), r, chain.Assignments, "a.b", "x/y")
	if err != nil {
		t.Fatal(err)
	}
	want := chain.Entry[chain.Assignment]{
		Key: "a=2Eb.x=2Fy", Revision: 2,
		Change: chain.Change[chain.Assignment]{
			Sequence: 9, Recorded: noon.AddDate(0, 0, 1), Effective: hour(1), Actor: "a1",
			Value: chain.Assignment{Node: "a.b", Module: "x/y", Build: "b2", Provisioning: events.Raw(`{ "a": 1 }`)},
			Raw:   []byte(`{"node":"a.b","module":"x/y","provisioning":{ "a": 1 },"build":"b2"}`),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	version, err := chain.Get(t.Context(), r, chain.Publications, "shop", "1.20")
	if err != nil || version.Value.Package.Version != "1.20" {
		t.Errorf("publication is %+v with error %v", version, err)
	}
	if b.opened != 3 { // and that of the pointers
		t.Errorf("two buckets were opened %d times", b.opened-1)
	}
}

func TestGetSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := newBuckets().reader()
	_, err := chain.Get(t.Context(), r, chain.Assignments, "n 1", "web")
	if !errors.Is(err, es.ErrNotFound) || err.Error() != `there is no assignment "n 1" "web" (key n=201.web)` {
		t.Errorf("error is %v", err)
	}
	if hint := errors.FlattenHints(err); hint != "get assignments lists what there is, and with --all those that ended" {
		t.Errorf("hint is %q", hint)
	}
	_, err = chain.Get(t.Context(), r, chain.Builds, "b1")
	if hint := errors.FlattenHints(err); hint != "get builds lists what there is" {
		t.Errorf("hint is %q", hint)
	}
}

func TestReadsRefuseWhatCannotBeAKey(t *testing.T) {
	t.Parallel()
	r := newBuckets().reader()
	ctx := t.Context()
	for name, read := range map[string]func() error{
		"get":     func() error { _, err := chain.Get(ctx, r, chain.Assignments, "n1"); return err },
		"history": func() error { _, err := chain.History(ctx, r, chain.Assignments, "n1", ""); return err },
		"as-of":   func() error { _, err := chain.AsOf(ctx, r, chain.Assignments, noon, "n1", "\x00"); return err },
		"list":    func() error { _, err := chain.List(ctx, r, chain.Assignments, chain.Query{Node: "\u200b"}); return err },
	} {
		if err := read(); !errors.Is(err, es.ErrName) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestReadsGiveTheBucketsErrors(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1"})
	r := b.reader()
	ctx := t.Context()
	var actor string // another one each time, since a name is remembered
	reads := map[string]func() error{
		"get":              func() error { _, err := chain.Get(ctx, r, chain.Nodes, "n1"); return err },
		"history":          func() error { _, err := chain.History(ctx, r, chain.Nodes, "n1"); return err },
		"list":             func() error { _, err := chain.List(ctx, r, chain.Nodes, chain.Query{}); return err },
		"list of a page":   func() error { _, err := chain.List(ctx, r, chain.Nodes, chain.Query{Limit: 1}); return err },
		"name of an actor": func() error { _, err := r.ActorName(ctx, actor); return err },
		"wait":             func() error { return r.WaitRevision(ctx, chain.Nodes.Bucket(), 99) },
	}
	for _, when := range []string{"while opening", "when opened"} {
		actor = when
		b.setFail(errors.Mark(errors.New("no answer"), es.ErrUnavailable))
		for name, read := range reads {
			if err := read(); !errors.Is(err, es.ErrUnavailable) {
				t.Errorf("%s, %s: error is %v", name, when, err)
			}
		}
		b.setFail(nil)
		for name, read := range reads {
			if name == "wait" {
				continue
			}
			if err := read(); err != nil {
				t.Errorf("%s, after the bus came back: %v", name, err)
			}
		}
	}
}

func TestReadsNameAValueThatIsNoRecord(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	b.put(chain.Nodes.Bucket(), "n1", []byte(`{"node":`), project.Meta{})
	r := b.reader()
	_, getErr := chain.Get(t.Context(), r, chain.Nodes, "n1")
	_, listErr := chain.List(t.Context(), r, chain.Nodes, chain.Query{})
	_, historyErr := chain.History(t.Context(), r, chain.Nodes, "n1")
	for _, err := range []error{getErr, listErr, historyErr} {
		if err == nil || !strings.Contains(err.Error(), "chain-nodes: key n1 at revision 1 is not a node of ours") {
			t.Errorf("error is %v", err)
		}
	}
}

func TestWaitRevision(t *testing.T) {
	t.Parallel()
	t.Run("returns when the copy has caught up", func(t *testing.T) {
		t.Parallel()
		b := newBuckets()
		r := b.reader()
		put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1"})
		var followed sync.WaitGroup
		followed.Go(func() { put(b, chain.Nodes, 2, 0, chain.Node{Node: "n2"}) })
		if err := r.WaitRevision(t.Context(), chain.Nodes.Bucket(), 2); err != nil {
			t.Fatal(err)
		}
		if _, err := chain.Get(t.Context(), r, chain.Nodes, "n2"); err != nil {
			t.Errorf("read after the wait: %v", err)
		}
		followed.Wait()
	})
	t.Run("tells how far the copy is when time is up", func(t *testing.T) {
		t.Parallel()
		b := newBuckets()
		put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1"})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := b.reader().WaitRevision(ctx, chain.Nodes.Bucket(), 5)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait for revision 5 of chain-nodes: this copy is at 1") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestReaderIsSafeForManyGoroutines(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1"})
	b.put("catenary-actors", "a1", []byte(`{"name":"ann"}`), project.Meta{})
	r := b.reader()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := chain.Get(t.Context(), r, chain.Nodes, "n1"); err != nil {
				t.Error(err)
			}
			if name, err := r.ActorName(t.Context(), "a1"); err != nil || name != "ann" {
				t.Errorf("name is %q with error %v", name, err)
			}
		})
	}
	all.Wait()
}
