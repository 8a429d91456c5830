package chain

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// History gives every value a record ever had, oldest first by effective time; at equal times the later event is later.
// Values that were added after the fact stand among the others.
func History[T Record](ctx context.Context, r *Reader, kind Kind[T], names ...string) ([]Change[T], error) {
	key, err := kind.Key(names...)
	if err != nil {
		return nil, err
	}
	entries, err := r.values(ctx, kind.bucket, key)
	if err != nil {
		return nil, errors.Wrapf(err, "history of %s %s", kind.aggregate, key)
	}
	if kind.resume != nil {
		added, err := r.values(ctx, BackfillBucket, kind.BackfillKey(key))
		if err != nil {
			return nil, errors.Wrapf(err, "history of %s %s: values added to it", kind.aggregate, key)
		}
		entries = append(entries, added...)
	}
	if len(entries) == 0 {
		return nil, notFound(kind, key, names)
	}
	return merge(kind, entries)
}

// values gives all values of the keys that fit a filter, oldest first.
func (r *Reader) values(ctx context.Context, bucket, filter string) ([]project.Entry, error) {
	b, err := r.bucket(ctx, bucket)
	if err != nil {
		return nil, err
	}
	var entries []project.Entry
	foreign := map[uint64]error{}
	replaced := map[uint64]bool{}
	for e, err := range b.Values(ctx, filter) {
		switch {
		case errors.Is(err, project.ErrForeign):
			foreign[e.Revision] = err
			continue
		case err != nil:
			return nil, err
		}
		if e.Meta.Replaces > 0 {
			replaced[e.Meta.Replaces] = true
		}
		entries = append(entries, e)
	}
	for revision, err := range foreign {
		if !replaced[revision] {
			return nil, err
		}
	}
	// What was not as it should be never was so. A value that mends a bucket stands in its place.
	return slices.DeleteFunc(entries, func(e project.Entry) bool { return replaced[e.Revision] }), nil
}

// merge orders values and lets added ones take over what was so before them.
func merge[T Record](kind Kind[T], entries []project.Entry) ([]Change[T], error) {
	changes := make([]Change[T], 0, len(entries))
	at := make(map[uint64]int, len(entries))
	for _, e := range entries {
		entry, err := entryOf(kind, e)
		if err != nil {
			return nil, err
		}
		// A value that was mended stands twice, with the same source: the later one counts.
		if i, again := at[entry.Sequence]; again {
			changes[i] = entry.Change
			continue
		}
		at[entry.Sequence] = len(changes)
		changes = append(changes, entry.Change)
	}
	slices.SortFunc(changes, func(a, b Change[T]) int {
		return cmp.Or(a.Effective.Compare(b.Effective), cmp.Compare(a.Sequence, b.Sequence))
	})
	for i := range changes {
		if c := &changes[i]; c.Backfill && i > 0 {
			c.Value = kind.resume(changes[i-1].Value, c.Value)
			raw, err := Encode(c.Value)
			if err != nil {
				return nil, err
			}
			c.Raw = raw
		}
	}
	return changes, nil
}

// AsOf gives the value that a record had at a moment: the one with the greatest effective time not after it. Whether it
// stood then is [Kind.Stands] of the value. Errors are marked [es.ErrNotFound] also when nothing was known of it yet.
func AsOf[T Record](ctx context.Context, r *Reader, kind Kind[T], at time.Time, names ...string) (Change[T], error) {
	changes, err := History(ctx, r, kind, names...)
	if err != nil {
		return Change[T]{}, err
	}
	change, known := asOf(changes, at)
	if !known {
		return Change[T]{}, errors.Mark(errors.Newf("there was no %s %s at %s: its history begins at %s", kind.aggregate,
			quoted(names), at.UTC().Format(time.RFC3339Nano), changes[0].Effective.UTC().Format(time.RFC3339Nano)), es.ErrNotFound)
	}
	return change, nil
}

// asOf gives the last of ordered values that is not after a moment.
func asOf[T any](changes []Change[T], at time.Time) (Change[T], bool) {
	i, _ := slices.BinarySearchFunc(changes, at, func(c Change[T], at time.Time) int {
		if c.Effective.After(at) {
			return 1
		}
		return -1
	})
	if i == 0 {
		return Change[T]{}, false
	}
	return changes[i-1], true
}

// ListAsOf gives the values that records had at a moment, in the order of their keys, as [AsOf] gives each; a record that was not known then is left
// out. The query's node and module narrow it; the rest of it must be empty. It reads each value of all these records once, which is many
// times faster than asking for one after another, and holds those up to the moment. It gives the errors of [List].
func ListAsOf[T Record](ctx context.Context, r *Reader, kind Kind[T], at time.Time, q Query) ([]Change[T], error) {
	filter, err := kind.filter(q)
	if err != nil {
		return nil, err
	}
	byKey := map[string][]project.Entry{}
	keep := func(bucket, filter, prefix string) error {
		entries, err := r.values(ctx, bucket, filter)
		for _, e := range entries {
			if key := strings.TrimPrefix(e.Key, prefix); !project.IsParkedKey(e.Key) && !e.Meta.Effective.After(at) {
				byKey[key] = append(byKey[key], e)
			}
		}
		return errors.Wrapf(err, "what %s were at %s", kind.Plural(), at.UTC().Format(time.RFC3339Nano))
	}
	if err := keep(kind.bucket, filter, ""); err != nil {
		return nil, err
	}
	if kind.resume != nil {
		if err := keep(BackfillBucket, kind.BackfillKey(filter), kind.BackfillKey("")); err != nil {
			return nil, err
		}
	}
	var list []Change[T]
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		changes, err := merge(kind, byKey[key])
		if err != nil {
			return nil, err
		}
		if c, known := asOf(changes, at); known && kind.node.matches(c.Value, q.Node) && kind.module.matches(c.Value, q.Module) {
			list = append(list, c)
		}
	}
	return list, nil
}
