package projecttest

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// MaxValueBytes bounds a value of a [Bucket], well above what any record may have.
const MaxValueBytes = 512 << 10

// Bucket is a [project.Bucket] in memory, safe for concurrent use. The zero value is an empty bucket.
type Bucket struct {
	mu      sync.Mutex
	entries []slot
}

// slot is one revision: gone, foreign or a value.
type slot struct {
	project.Entry
	gone, foreign bool
}

// State tells how whole the bucket is.
func (b *Bucket) State(ctx context.Context) (project.BucketState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := project.BucketState{Last: uint64(len(b.entries))}
	for _, e := range b.entries {
		if e.gone {
			s.Deleted++
		}
	}
	s.Messages = s.Last - s.Deleted
	return s, unavailable(ctx)
}

// Tail gives the newest value.
func (b *Bucket) Tail(ctx context.Context) (project.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := unavailable(ctx); err != nil {
		return project.Entry{}, err
	}
	for _, s := range slices.Backward(b.entries) {
		if !s.gone {
			return s.given()
		}
	}
	return project.Entry{}, errors.Mark(errors.New("the bucket is empty"), es.ErrNotFound)
}

// Put stores the value at once.
func (b *Bucket) Put(ctx context.Context, after uint64, key string, value []byte, meta project.Meta) es.Pending {
	p := es.NewPromise()
	p.Resolve(b.put(ctx, after, key, value, meta))
	return p
}

func (b *Bucket) put(ctx context.Context, after uint64, key string, value []byte, meta project.Meta) error {
	if len(value) > MaxValueBytes {
		return errors.Mark(errors.Newf("key %s: the value has %d bytes, the limit is %d", key, len(value), MaxValueBytes), es.ErrTooLarge)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := unavailable(ctx); err != nil {
		return err
	}
	if last := uint64(len(b.entries)); last != after {
		return errors.Mark(errors.Newf("put after value %d: the last value is %d", after, last), es.ErrConflict)
	}
	b.add(slot{Entry: project.Entry{Key: key, Value: bytes.Clone(value), Meta: meta}})
	return nil
}

// add appends a slot. The lock is held.
func (b *Bucket) add(s slot) {
	s.Revision, s.Stored = uint64(len(b.entries))+1, time.Now().UTC()
	b.entries = append(b.entries, s)
}

// Get gives the newest value of a key. It gives errors marked [es.ErrNotFound].
func (b *Bucket) Get(ctx context.Context, key string) (project.Entry, error) {
	last := project.Entry{}
	for e, err := range b.History(ctx, key) {
		if err != nil {
			return project.Entry{}, err
		}
		last = e
	}
	if last.Revision == 0 {
		return last, errors.Mark(errors.Newf("no value for key %s", key), es.ErrNotFound)
	}
	return last, nil
}

// Entries gives the newest value of every key that a filter matches, by revision.
func (b *Bucket) Entries(ctx context.Context, filter ...string) iter.Seq2[project.Entry, error] {
	return func(yield func(project.Entry, error) bool) {
		newest := map[string]uint64{}
		slots := b.slots(0)
		for _, s := range slots {
			newest[s.Key] = s.Revision
		}
		give(ctx, slots, yield, func(s slot) bool { return newest[s.Key] == s.Revision && matches(filter, s.Key) })
	}
}

// History gives every value of one key, by revision.
func (b *Bucket) History(ctx context.Context, key string) iter.Seq2[project.Entry, error] {
	return func(yield func(project.Entry, error) bool) {
		give(ctx, b.slots(0), yield, func(s slot) bool { return s.Key == key })
	}
}

// All gives every value after a revision, by revision.
func (b *Bucket) All(ctx context.Context, after uint64) iter.Seq2[project.Entry, error] {
	return func(yield func(project.Entry, error) bool) {
		give(ctx, b.slots(after), yield, func(slot) bool { return true })
	}
}

// PutForeign adds a message that no projector would write.
func (b *Bucket) PutForeign(key string, value []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(slot{Entry: project.Entry{Key: key, Value: value}, foreign: true})
}

// Forge adds a value unguarded, with whatever headers: a hand in the bucket.
func (b *Bucket) Forge(key string, value []byte, meta project.Meta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(slot{Entry: project.Entry{Key: key, Value: value, Meta: meta}})
}

// Change changes a value where it stands, as only damage can.
func (b *Bucket) Change(revision uint64, change func(*project.Entry)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.entries[revision-1].Entry)
}

// Delete takes a value out, as only damage can.
func (b *Bucket) Delete(revision uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries[revision-1].gone = true
}

// Truncate loses the values after a revision, as a crash may.
func (b *Bucket) Truncate(revision uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = slices.Clone(b.entries[:revision])
}

func (b *Bucket) slots(after uint64) []slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries[min(after, uint64(len(b.entries))):])
}

func give(ctx context.Context, slots []slot, yield func(project.Entry, error) bool, wanted func(slot) bool) {
	for _, s := range slots {
		if err := unavailable(ctx); err != nil {
			yield(project.Entry{}, err)
			return
		}
		if s.gone || !wanted(s) {
			continue
		}
		if !yield(s.given()) {
			return
		}
	}
}

func (s slot) given() (project.Entry, error) {
	e := s.Entry
	e.Value = bytes.Clone(e.Value)
	if s.foreign {
		return e, errors.Mark(errors.Newf("value %d for key %s has no position", e.Revision, e.Key), project.ErrForeign)
	}
	return e, nil
}

// matches says whether one of the filters matches a key, token by token; no filter matches all.
func matches(filters []string, key string) bool {
	if len(filters) == 0 {
		return true
	}
	have := strings.Split(key, ".")
	return slices.ContainsFunc(filters, func(filter string) bool {
		want := strings.Split(filter, ".")
		for i, token := range want {
			switch {
			case token == ">":
				return len(have) > i
			case i >= len(have) || token != "*" && token != have[i]:
				return false
			}
		}
		return len(want) == len(have)
	})
}

func unavailable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errors.Mark(err, es.ErrUnavailable)
	}
	return nil
}

// Marks is a [project.Marks] in memory, safe for concurrent use. The zero value is empty.
type Marks struct {
	mu     sync.Mutex
	values map[string][]byte
}

// Get gives a mark.
func (m *Marks) Get(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := unavailable(ctx); err != nil {
		return nil, err
	}
	v, ok := m.values[key]
	if !ok {
		return nil, errors.Mark(errors.Newf("no mark %s", key), es.ErrNotFound)
	}
	return bytes.Clone(v), nil
}

// Set replaces a mark.
func (m *Marks) Set(ctx context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := unavailable(ctx); err != nil {
		return err
	}
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[key] = bytes.Clone(value)
	return nil
}
