package chain

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// ErrQuery marks a query that can't be answered as it is asked: a filter that means nothing for the kind, a cursor that is
// none, a limit below zero.
var ErrQuery = errors.New("query can't be answered")

// Query says which records a list shall hold.
type Query struct {
	// Node and Module leave only what belongs to them. Empty means any.
	Node, Module string
	// All adds what does not stand.
	All bool
	// Limit bounds the page. Zero means everything at once.
	Limit int
	// Cursor goes on where the page before ended.
	Cursor string
}

// Page is a part of a list, in the order of the keys.
type Page[T Record] struct {
	Entries []Entry[T]
	// Cursor gets the next page. It is empty when there is nothing more.
	Cursor string
}

// List gives the newest values of a kind's records, only those that stand unless the query says otherwise. Pages are no
// snapshot: a record that changes between two pages is shown as it is when its page is read, and none is left out that was
// there from the first page to the last. Errors for what can't be asked are marked [ErrQuery].
func List[T Record](ctx context.Context, r *Reader, kind Kind[T], q Query) (Page[T], error) {
	filter, err := kind.filter(q)
	if err != nil {
		return Page[T]{}, err
	}
	b, err := r.bucket(ctx, kind.bucket)
	if err != nil {
		return Page[T]{}, err
	}
	l := lister[T]{bucket: b, kind: kind, query: q, filter: filter}
	if q.Limit == 0 {
		err = l.all(ctx)
	} else {
		err = l.page(ctx)
	}
	if err != nil {
		return Page[T]{}, errors.Wrapf(err, "list %s", kind.Plural())
	}
	return l.found, nil
}

// filter makes the filter over keys that leaves the fewest to look at.
func (k Kind[T]) filter(q Query) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		return "", errors.Mark(errors.Newf("list "+k.Plural()+": "+format, args...), ErrQuery)
	}
	if q.Limit < 0 {
		return fail("a limit of %d: give one above zero, or none for everything", q.Limit)
	}
	if q.Cursor != "" {
		if _, err := es.SplitKey(q.Cursor); err != nil {
			return fail("%q is no cursor: give the one that the page before came with", q.Cursor)
		}
	}
	tokens := slices.Repeat([]string{"*"}, len(k.names[0]))
	narrowed := false
	for _, by := range []struct {
		what, name string
		belongs    *belonging[T]
	}{{"node", q.Node, k.node}, {"module", q.Module, k.module}} {
		switch {
		case by.name == "":
			continue
		case by.belongs == nil:
			return fail("they do not belong to a %s: leave the filter out", by.what)
		}
		if err := es.CheckName(by.what, by.name); err != nil {
			return "", err
		}
		if by.belongs.token != noToken {
			tokens[by.belongs.token], narrowed = es.EscapeToken(by.name), true
		}
	}
	if !narrowed {
		return everyKey, nil
	}
	return strings.Join(tokens, "."), nil
}

// everyKey is the filter that leaves nothing out.
const everyKey = ">"

// lister gathers one page.
type lister[T Record] struct {
	bucket Bucket
	kind   Kind[T]
	query  Query
	filter string
	found  Page[T]
}

// take adds an entry that the query asks for.
func (l *lister[T]) take(e project.Entry) error {
	if project.IsParkedKey(e.Key) {
		return nil // what the projector says of an instance is no record of the chain
	}
	entry, err := entryOf(l.kind, e)
	if err != nil {
		return err
	}
	if (l.query.All || l.kind.Stands(entry.Value)) &&
		l.kind.node.matches(entry.Value, l.query.Node) && l.kind.module.matches(entry.Value, l.query.Module) {
		l.found.Entries = append(l.found.Entries, entry)
	}
	return nil
}

func (b *belonging[T]) matches(record T, name string) bool { return name == "" || b.of(record) == name }

// all reads every key once and sorts what is left. Value by value, as a page does it, would take longer.
func (l *lister[T]) all(ctx context.Context) error {
	newest := map[string]project.Entry{}
	for e, err := range l.bucket.Entries(ctx, l.filter) {
		if err != nil {
			return err
		}
		if e.Key > l.query.Cursor && e.Revision > newest[e.Key].Revision {
			newest[e.Key] = e
		}
	}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if err := l.take(newest[key]); err != nil {
			return err
		}
	}
	return nil
}

// mostKeys bounds how many keys are looked at together, and so the memory: 4,096 values of at most 64 KiB.
const mostKeys = 4096

// page reads keys in order until the page is full. It looks for one entry more than the limit to know whether there is a
// next page at all.
func (l *lister[T]) page(ctx context.Context) error {
	after, size := l.query.Cursor, min(l.query.Limit+1, mostKeys)
	for {
		entries, err := l.bucket.Page(ctx, l.filter, after, size)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := l.take(e); err != nil {
				return err
			}
			if len(l.found.Entries) > l.query.Limit {
				l.found.Entries = l.found.Entries[:l.query.Limit]
				l.found.Cursor = l.found.Entries[l.query.Limit-1].Key
				return nil
			}
		}
		if len(entries) < size {
			return nil
		}
		after, size = entries[len(entries)-1].Key, min(2*size, mostKeys)
	}
}
