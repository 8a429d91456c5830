package chain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/chain"
	"catenary/events"
)

func fleet() *buckets {
	b := newBuckets()
	put(b, chain.Assignments, 1, 0, chain.Assignment{Node: "n2", Module: "web"})
	put(b, chain.Assignments, 2, 0, chain.Assignment{Node: "n1", Module: "web"})
	put(b, chain.Assignments, 3, 0, chain.Assignment{Node: "n1", Module: "db"})
	put(b, chain.Assignments, 4, 0, chain.Assignment{Node: "n1", Module: "old", Ended: noon})
	put(b, chain.Assignments, 5, 0, chain.Assignment{Node: "n3", Module: "web", State: events.StatePending})
	put(b, chain.Assignments, 6, 0, chain.Assignment{Node: "n.1", Module: "web"})
	put(b, chain.Assignments, 7, 1, chain.Assignment{Node: "n2", Module: "web", Build: "b2"})
	put(b, chain.Nodes, 8, 0, chain.Node{Node: "n1"})
	put(b, chain.Nodes, 9, 0, chain.Node{Node: "n2", Retired: noon})
	put(b, chain.Builds, 10, 0, chain.Build{ID: "b1", Module: "web"})
	put(b, chain.Builds, 11, 0, chain.Build{ID: "b2", Module: "db"})
	put(b, chain.Publications, 12, 0, chain.Published{Reference: events.Reference{Artifact: "sha256:1"}, Module: "web"})
	put(b, chain.Publications, 13, 0, chain.Published{Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1"}}, Module: "web"})
	put(b, chain.Modules, 14, 0, chain.Module{Name: "web"})
	put(b, chain.Modules, 15, 0, chain.Module{Name: "db"})
	put(b, chain.Freezes, 16, 0, chain.Freeze{Name: "holiday", Ended: noon})
	put(b, chain.Commits, 17, 0, chain.Commit{Repository: "r", Commit: "c1"})
	return b
}

func keys[T chain.Record](t *testing.T, r *chain.Reader, kind chain.Kind[T], q chain.Query) string {
	t.Helper()
	page, err := chain.List(t.Context(), r, kind, q)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, len(page.Entries))
	for i, e := range page.Entries {
		keys[i] = e.Key
	}
	return strings.Join(keys, " ")
}

func TestList(t *testing.T) {
	t.Parallel()
	r := fleet().reader()
	for name, c := range map[string]struct{ got, want string }{
		"what stands, by key":   {keys(t, r, chain.Assignments, chain.Query{}), "n1.db n1.web n2.web n=2E1.web"},
		"with what ended":       {keys(t, r, chain.Assignments, chain.Query{All: true}), "n1.db n1.old n1.web n2.web n3.web n=2E1.web"},
		"of a node":             {keys(t, r, chain.Assignments, chain.Query{Node: "n1"}), "n1.db n1.web"},
		"of a node with a dot":  {keys(t, r, chain.Assignments, chain.Query{Node: "n.1"}), "n=2E1.web"},
		"of a module":           {keys(t, r, chain.Assignments, chain.Query{Module: "web"}), "n1.web n2.web n=2E1.web"},
		"of both":               {keys(t, r, chain.Assignments, chain.Query{Node: "n1", Module: "old", All: true}), "n1.old"},
		"of a node unknown":     {keys(t, r, chain.Assignments, chain.Query{Node: "n9"}), ""},
		"after a cursor":        {keys(t, r, chain.Assignments, chain.Query{Cursor: "n1.web"}), "n2.web n=2E1.web"},
		"nodes":                 {keys(t, r, chain.Nodes, chain.Query{}), "n1"},
		"one node, retired":     {keys(t, r, chain.Nodes, chain.Query{Node: "n2", All: true}), "n2"},
		"builds of a module":    {keys(t, r, chain.Builds, chain.Query{Module: "web"}), "b1"},
		"published of a module": {keys(t, r, chain.Publications, chain.Query{Module: "web"}), "sha256=3A1 web.1"},
		"one module":            {keys(t, r, chain.Modules, chain.Query{Module: "db"}), "db"},
		"freezes":               {keys(t, r, chain.Freezes, chain.Query{}), ""},
		"commits":               {keys(t, r, chain.Commits, chain.Query{}), "r.c1"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
	page, err := chain.List(t.Context(), r, chain.Assignments, chain.Query{Node: "n2"})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Value.Build != "b2" || page.Entries[0].Sequence != 7 {
		t.Errorf("the newest value is %+v with error %v", page, err)
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	r := fleet().reader()
	ctx := t.Context()
	for name, c := range map[string]struct {
		list func() error
		says string
	}{
		"commits of a module": {func() error { _, err := chain.List(ctx, r, chain.Commits, chain.Query{Module: "web"}); return err }, "list commits: they do not belong to a module"},
		"builds on a node":    {func() error { _, err := chain.List(ctx, r, chain.Builds, chain.Query{Node: "n1"}); return err }, "list builds: they do not belong to a node"},
		"a limit below zero":  {func() error { _, err := chain.List(ctx, r, chain.Nodes, chain.Query{Limit: -1}); return err }, "a limit of -1"},
		"a cursor of no page": {func() error { _, err := chain.List(ctx, r, chain.Nodes, chain.Query{Cursor: "n1 n2"}); return err }, `"n1 n2" is no cursor`},
	} {
		if err := c.list(); !errors.Is(err, chain.ErrQuery) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error is %v, want one that says %q", name, err, c.says)
		}
	}
}

// TestPagesAreTheWholeList: whatever the limit, and however many records that do not stand lie between those that do, pages
// give what the whole list gives and the last one has no cursor.
func TestPagesAreTheWholeList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBuckets()
		standing := rapid.SliceOfN(rapid.Bool(), 0, 700).Draw(t, "standing")
		for i, stands := range standing {
			a := chain.Assignment{Node: fmt.Sprintf("n%d", i%7), Module: fmt.Sprintf("m%d", i)}
			if !stands {
				a.Ended = noon
			}
			put(b, chain.Assignments, uint64(i+1), 0, a)
		}
		r := b.reader()
		q := chain.Query{All: rapid.Bool().Draw(t, "all")}
		if rapid.Bool().Draw(t, "of a node") {
			q.Node = "n3"
		}
		whole, err := chain.List(t.Context(), r, chain.Assignments, q)
		if err != nil {
			t.Fatal(err)
		}
		if whole.Cursor != "" {
			t.Fatalf("the whole list has the cursor %q", whole.Cursor)
		}
		q.Limit = rapid.SampledFrom([]int{1, 3, 256, 257, 699, 700, 5000}).Draw(t, "limit")
		if q.Limit < 10 && len(standing) > 100 {
			q.Limit *= 50
		}
		var pages []chain.Entry[chain.Assignment]
		for more := true; more; more = q.Cursor != "" {
			page, err := chain.List(t.Context(), r, chain.Assignments, q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Entries) > q.Limit || page.Cursor != "" && len(page.Entries) < q.Limit {
				t.Fatalf("a page of %d with limit %d and cursor %q", len(page.Entries), q.Limit, page.Cursor)
			}
			pages = append(pages, page.Entries...)
			q.Cursor = page.Cursor
		}
		if diff := cmp.Diff(whole.Entries, pages); diff != "" {
			t.Fatalf("pages (-whole +pages):\n%s", diff)
		}
		if !slices.IsSortedFunc(pages, func(a, b chain.Entry[chain.Assignment]) int { return strings.Compare(a.Key, b.Key) }) {
			t.Fatal("not in the order of the keys")
		}
	})
}
