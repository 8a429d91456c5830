package journal

import (
	"iter"
	"maps"
)

// Table holds one value a key.
type Table[K comparable, V any] struct {
	log  *Log
	rows map[K]V
}

// NewTable returns an empty table whose changes the log remembers.
func NewTable[K comparable, V any](log *Log) *Table[K, V] {
	return &Table[K, V]{log: log, rows: map[K]V{}}
}

// Get gives the value of a key, and whether there is one.
func (t *Table[K, V]) Get(key K) (V, bool) {
	v, ok := t.rows[key]
	return v, ok
}

// Reserve makes room for a number of rows in an empty table.
func (t *Table[K, V]) Reserve(rows int) {
	if len(t.rows) == 0 {
		t.rows = make(map[K]V, rows)
	}
}

// Len gives the number of rows.
func (t *Table[K, V]) Len() int { return len(t.rows) }

// All gives every key with its value, in no order.
func (t *Table[K, V]) All() iter.Seq2[K, V] { return maps.All(t.rows) }

// Put sets the value of a key.
func (t *Table[K, V]) Put(key K, value V) {
	t.remember(key)
	t.rows[key] = value
}

// Delete takes a key away.
func (t *Table[K, V]) Delete(key K) {
	t.remember(key)
	delete(t.rows, key)
}

func (t *Table[K, V]) remember(key K) {
	if !t.log.Open() {
		return
	}
	before, had := t.rows[key]
	t.log.Remember(func() {
		if had {
			t.rows[key] = before
		} else {
			delete(t.rows, key)
		}
	})
}
