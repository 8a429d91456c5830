package chain_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
)

var noon = time.Date(2026, 5, 7, 12, 0, 0, 0, time.UTC)

// buckets keeps buckets in memory, as far as a reader looks at them.
type buckets struct {
	mu     sync.Mutex
	values map[string][]project.Entry
	// fail is given by every read while it is set.
	fail error
	// opened counts how often a bucket was opened.
	opened int
}

func newBuckets() *buckets { return &buckets{values: map[string][]project.Entry{}} }

func (b *buckets) open(_ context.Context, name string) (chain.Bucket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	if b.fail != nil {
		return nil, b.fail
	}
	return fakeBucket{buckets: b, name: name}, nil
}

func (b *buckets) reader() *chain.Reader { return chain.NewReader(chain.Config{Open: b.open}) }

func (b *buckets) setFail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// put adds a value and gives its revision.
func (b *buckets) put(bucket, key string, value []byte, meta project.Meta) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	revision := uint64(len(b.values[bucket]) + 1)
	b.values[bucket] = append(b.values[bucket], project.Entry{Key: key, Value: value, Revision: revision, Meta: meta})
	return revision
}

// record adds a record that an event led to, at so many hours after noon.
func put[T chain.Record](b *buckets, kind chain.Kind[T], sequence uint64, hours int, record T) {
	b.put(kind.Bucket(), kind.KeyOf(record), encoded(record), meta(sequence, hours))
}

// add adds a value to the history of a record.
func add[T chain.Record](b *buckets, kind chain.Kind[T], sequence uint64, hours int, record T) {
	m := meta(sequence, hours)
	m.Backfill = true
	b.put(chain.BackfillBucket, kind.BackfillKey(kind.KeyOf(record)), encoded(record), m)
}

func encoded[T chain.Record](record T) []byte {
	value, err := chain.Encode(record)
	if err != nil {
		panic(err) // the test's own record
	}
	return value
}

func meta(sequence uint64, hours int) project.Meta {
	return project.Meta{
		Position: project.Position{Sequence: sequence, Part: 1, Parts: 1},
		Source:   project.Source{Sequence: sequence, ID: "e" + string(rune('0'+sequence%10))},
		Recorded: noon.AddDate(0, 0, 1), Effective: hour(hours), Actor: "a1",
	}
}

func hour(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }

// fakeBucket is one of them.
type fakeBucket struct {
	*buckets
	name string
}

func (b fakeBucket) read() ([]project.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.values[b.name]), b.fail
}

func (b fakeBucket) newest(filter ...string) (map[string]project.Entry, error) {
	entries, err := b.read()
	newest := map[string]project.Entry{}
	for _, e := range entries {
		if len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return fits(f, e.Key) }) {
			newest[e.Key] = e
		}
	}
	return newest, err
}

// fits says whether a key fits a filter of tokens.
func fits(filter, key string) bool {
	if all, ok := strings.CutSuffix(filter, ">"); ok {
		return strings.HasPrefix(key, all)
	}
	f, k := strings.Split(filter, "."), strings.Split(key, ".")
	if len(f) != len(k) {
		return false
	}
	for i := range f {
		if f[i] != "*" && f[i] != k[i] {
			return false
		}
	}
	return true
}

func (b fakeBucket) Get(_ context.Context, key string) (project.Entry, error) {
	newest, err := b.newest(key)
	if err != nil {
		return project.Entry{}, err
	}
	e, ok := newest[key]
	if !ok {
		return e, errors.Mark(errors.Newf("no key %s", key), es.ErrNotFound)
	}
	return e, nil
}

func (b fakeBucket) Values(_ context.Context, filter ...string) iter.Seq2[project.Entry, error] {
	return func(yield func(project.Entry, error) bool) {
		entries, err := b.read()
		if err != nil {
			yield(project.Entry{}, err)
			return
		}
		for _, e := range entries {
			if slices.ContainsFunc(filter, func(f string) bool { return fits(f, e.Key) }) && !yield(e, nil) {
				return
			}
		}
	}
}

func (b fakeBucket) Entries(_ context.Context, filter ...string) iter.Seq2[project.Entry, error] {
	return func(yield func(project.Entry, error) bool) {
		newest, err := b.newest(filter...)
		if err != nil {
			yield(project.Entry{}, err)
			return
		}
		for _, e := range newest {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (b fakeBucket) Page(_ context.Context, filter, afterKey string, limit int) ([]project.Entry, error) {
	newest, err := b.newest(filter)
	if err != nil {
		return nil, err
	}
	var page []project.Entry
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if key > afterKey && len(page) < limit {
			page = append(page, newest[key])
		}
	}
	return page, nil
}

func (b fakeBucket) State(context.Context) (project.BucketState, error) {
	entries, err := b.read()
	n := uint64(len(entries))
	return project.BucketState{Last: n, Messages: n}, err
}
