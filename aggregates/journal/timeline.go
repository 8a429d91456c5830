package journal

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Timeline holds, for each key, entries in the order of a time and, at equal times, of a sequence.
type Timeline[K comparable, V any] struct {
	log   *Log
	lines map[K][]Entry[V]
}

// Entry is a value at its place in time.
type Entry[V any] struct {
	At       int64
	Sequence uint64
	Value    V
}

// NewTimeline returns an empty timeline whose changes the log remembers.
func NewTimeline[K comparable, V any](log *Log) *Timeline[K, V] {
	return &Timeline[K, V]{log: log, lines: map[K][]Entry[V]{}}
}

// Insert puts a value at its place. A time and a sequence MUST be used only once for a key.
func (t *Timeline[K, V]) Insert(key K, at int64, sequence uint64, value V) {
	e := Entry[V]{At: at, Sequence: sequence, Value: value}
	place, _ := slices.BinarySearchFunc(t.lines[key], e, byTime)
	if t.log.Open() {
		t.log.Remember(func() { t.remove(key, place) })
	}
	t.lines[key] = slices.Insert(t.lines[key], place, e)
}

func (t *Timeline[K, V]) remove(key K, place int) {
	if line := slices.Delete(t.lines[key], place, place+1); len(line) > 0 {
		t.lines[key] = line
	} else {
		delete(t.lines, key)
	}
}

func byTime[V any](a, b Entry[V]) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Sequence, b.Sequence))
}

// All gives every key with its entries in order, the keys in none.
func (t *Timeline[K, V]) All() iter.Seq2[K, []Entry[V]] { return maps.All(t.lines) }

// Newest gives a key's values, newest first.
func (t *Timeline[K, V]) Newest(key K) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, e := range slices.Backward(t.lines[key]) {
			if !yield(e.Value) {
				return
			}
		}
	}
}
