package perkey

import (
	"bytes"

	"github.com/cockroachdb/errors"

	"catenary/chain"
)

// table holds the newest value of each key of a kind, as the bytes that stand in its bucket. Records would be quicker to
// get, but an empty list would then differ from the one that was left out of its value.
type table[T chain.Record] struct {
	kind   chain.Kind[T]
	values map[string][]byte
}

func newTable[T chain.Record](kind chain.Kind[T]) *table[T] {
	return &table[T]{kind: kind, values: map[string][]byte{}}
}

// load takes in a value that stands in the bucket.
func (t *table[T]) load(key string, value []byte) error {
	record, err := chain.Decode[T](value)
	if err != nil {
		return errors.Wrapf(err, "%s: value of key %s", t.kind.Bucket(), key)
	}
	if err := t.check(key, record); err != nil {
		return err
	}
	t.values[key] = bytes.Clone(value) // the value may be a small part of a whole message
	return nil
}

// get gives a copy of the newest record of a key, nil when there is none.
func (t *table[T]) get(key string) (*T, error) {
	value, found := t.values[key]
	if !found {
		return nil, nil
	}
	record, err := chain.Decode[T](value)
	if err != nil {
		return nil, errors.Wrapf(err, "%s: value of key %s", t.kind.Bucket(), key)
	}
	return &record, nil
}

// put makes a record the newest of its key and gives the value to store.
func (t *table[T]) put(key string, record T) ([]byte, error) {
	if err := t.check(key, record); err != nil {
		return nil, err
	}
	value, err := chain.Encode(record)
	if err != nil {
		return nil, errors.Wrapf(err, "%s: value of key %s", t.kind.Bucket(), key)
	}
	t.values[key] = value
	return value, nil
}

func (t *table[T]) check(key string, record T) error {
	if own := t.kind.KeyOf(record); own != key {
		return errors.Newf("%s: a record of %s stands under key %s", t.kind.Bucket(), own, key)
	}
	return nil
}
