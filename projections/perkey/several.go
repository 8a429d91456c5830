package perkey

import (
	"bytes"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
)

// FoldSeveral gives the records that an event changes, each once. get gives the record under a key, nil when there is none; it is a copy,
// and may be changed and kept, but not what its lists and maps hold. It gives errors for an event it can't fold.
type FoldSeveral[T chain.Record, E any] func(get func(key string) (*T, error), e es.Event, data E) ([]T, error)

// Several is a [project.View] of records of which an event of an aggregate changes any number, under keys of their own.
type Several[T chain.Record, E any] struct {
	aggregate string
	version   int
	fold      FoldSeveral[T, E]
	table     *table[T]
}

// NewSeveral returns a view without records, of what happens to an aggregate. The version is raised with every change of the fold
// that gives other values.
func NewSeveral[T chain.Record, E any](kind chain.Kind[T], aggregate string, version int, fold FoldSeveral[T, E]) *Several[T, E] {
	return &Several[T, E]{aggregate: aggregate, version: version, fold: fold, table: newTable(kind)}
}

// Name is the kind's bucket.
func (v *Several[T, E]) Name() string { return v.table.kind.Bucket() }

// Version is the version of the fold.
func (v *Several[T, E]) Version() int { return v.version }

// Aggregates lists what the view reads.
func (v *Several[T, E]) Aggregates() []string { return []string{v.aggregate} }

// Load takes in a value that stands in the bucket. It gives errors for a value that is not a record of the kind, or that
// stands under another record's key.
func (v *Several[T, E]) Load(key string, value []byte) error { return v.table.load(key, value) }

// Fold gives the values that an event of the aggregate leads to, and none for others and for backfilled ones. It gives the errors
// of [View.Fold].
func (v *Several[T, E]) Fold(e es.Event) ([]project.Value, error) {
	if e.Ref.Aggregate != v.aggregate || e.Backfill {
		return nil, nil
	}
	values, err := v.next(e)
	if err != nil {
		return nil, errors.Wrapf(err, "%s: event %d (%s of %s)", v.Name(), e.Sequence, e.Type, e.Ref)
	}
	for _, value := range values {
		v.table.store(value.Key, value.Data)
	}
	return values, nil
}

func (v *Several[T, E]) next(e es.Event) ([]project.Value, error) {
	data, ok := e.Data.(E)
	if !ok {
		return nil, Unknown(e)
	}
	records, err := v.fold(v.table.get, e, data)
	if err != nil {
		return nil, err
	}
	values := make([]project.Value, 0, len(records))
	seen := make(map[string]bool, len(records))
	for i := range records {
		key := v.table.kind.KeyOf(records[i])
		if seen[key] {
			return nil, errors.Newf("it changes %s twice", key)
		}
		seen[key] = true
		value, err := v.table.encoder.Encode(&records[i])
		if err != nil {
			return nil, errors.Wrapf(err, "value of key %s", key)
		}
		values = append(values, project.Value{Key: key, Data: value})
	}
	return values, nil
}

// get gives the newest record of a key, nil when there is none.
func (t *table[T]) get(key string) (*T, error) {
	s, ok := t.slots[key]
	if !ok {
		return nil, nil
	}
	record, err := t.decode(key, s.value)
	return &record, err
}

// store makes a value the newest of its key.
func (t *table[T]) store(key string, value []byte) {
	s := t.slot(key)
	t.records.drop(s)
	s.value = bytes.Clone(value)
}
