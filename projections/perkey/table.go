package perkey

import (
	"bytes"

	"github.com/cockroachdb/errors"

	"catenary/chain"
)

// table holds the newest value of each key of a kind, as the bytes that stand in its bucket, and the records of the keys
// that were folded last. Its memory grows with the keys and what they hold, not with the events.
type table[T chain.Record] struct {
	kind    chain.Kind[T]
	encoder *chain.Encoder[T]
	slots   map[string]*slot[T]
	records recent[T]
	// next is the memory of the next record; the one before takes its place.
	next *T
}

// slot is one key's newest value.
type slot[T chain.Record] struct {
	key   string
	value []byte
	// record is the value decoded, nil when it is not at hand. It is what decoding gives, but for lists and maps that are empty
	// and not nil; those are encoded alike.
	record     *T
	newer, old *slot[T] // its neighbours among the recent ones
}

func newTable[T chain.Record](kind chain.Kind[T]) *table[T] {
	return &table[T]{kind: kind, encoder: chain.NewEncoder[T](), slots: map[string]*slot[T]{}, next: new(T), records: recent[T]{limit: maxRecentBytes}}
}

// load takes in a value that stands in the bucket.
func (t *table[T]) load(key string, value []byte) error {
	record, err := t.decode(key, value)
	if err != nil {
		return err
	}
	if err := t.check(key, &record); err != nil {
		return err
	}
	s := t.slot(key)
	t.records.drop(s)
	s.value = bytes.Clone(value) // the value may be a small part of a whole message
	return nil
}

func (t *table[T]) decode(key string, value []byte) (T, error) {
	record, err := chain.Decode[T](value)
	return record, errors.Wrapf(err, "%s: value of key %s", t.kind.Bucket(), key)
}

// slot gives the slot of a key, a new one when there is none.
func (t *table[T]) slot(key string) *slot[T] {
	s, ok := t.slots[key]
	if !ok {
		s = &slot[T]{key: key}
		t.slots[key] = s
	}
	return s
}

// change makes the record that follows from the newest one of a key, nil when there is none, the newest, and gives the value
// to store. When that fails all is as it was, whatever next has done to the record it was given.
func (t *table[T]) change(key string, next func(before *T) (T, error)) ([]byte, error) {
	s := t.slots[key]
	var before *T
	if s != nil {
		if s.record == nil {
			record, err := t.decode(key, s.value)
			if err != nil {
				return nil, err
			}
			s.record = &record
			t.records.add(s)
		}
		before = s.record
	}
	value, err := t.made(key, before, next)
	if err != nil {
		if s != nil {
			t.records.drop(s)
		}
		return nil, err
	}
	if s == nil {
		s = t.slot(key)
	}
	t.records.drop(s)
	s.value, s.record = value, t.next
	if t.next = before; before == nil {
		t.next = new(T)
	}
	t.records.add(s)
	return value, nil
}

// made makes the next record and gives its value.
func (t *table[T]) made(key string, before *T, next func(*T) (T, error)) ([]byte, error) {
	var err error
	if *t.next, err = next(before); err != nil {
		return nil, err
	}
	if err := t.check(key, t.next); err != nil {
		return nil, err
	}
	value, err := t.encoder.Encode(t.next)
	if err != nil {
		return nil, errors.Wrapf(err, "%s: value of key %s", t.kind.Bucket(), key)
	}
	return value, nil
}

func (t *table[T]) check(key string, record *T) error {
	if t.kind.StandsUnder(record, key) {
		return nil
	}
	return errors.Newf("%s: a record of %s stands under key %s", t.kind.Bucket(), t.kind.KeyOf(*record), key)
}
