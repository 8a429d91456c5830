package chain

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// Config is what a [Reader] needs.
type Config struct {
	// Open opens a bucket. It is called once for each bucket that is read, and again after it failed.
	Open func(ctx context.Context, bucket string) (Bucket, error)
	// Positions says how far each view is, after it has waited, for a time of its own or until the context ends, for all of them to
	// pass an event. It is needed for [Reader.WaitFor] alone.
	Positions func(ctx context.Context, event uint64) ([]Position, error)
	// Clock tells how old a cached name is. Nil means the machine's.
	Clock func() time.Time
}

// Reader reads the records of the chain, from the mirrors in the account of people or from the buckets themselves. It is
// safe for use by many goroutines.
//
// Errors of all reads are marked [es.ErrNotFound] when there is no such record or bucket, [es.ErrUnavailable] when the bus
// can't be reached, and [es.ErrName] for names that no record can have. Hints say what to do.
type Reader struct {
	open      func(ctx context.Context, bucket string) (Bucket, error)
	positions func(ctx context.Context, event uint64) ([]Position, error)
	names     nameCache
	pointers  pointers

	mu      sync.Mutex
	buckets map[string]Bucket
}

// NewReader returns a reader. Nothing is opened before it is read.
func NewReader(c Config) *Reader {
	clock := c.Clock
	if clock == nil {
		clock = time.Now
	}
	positions := c.Positions
	if positions == nil {
		positions = func(context.Context, uint64) ([]Position, error) {
			return nil, errors.AssertionFailedf("this reader was not told how to ask for positions")
		}
	}
	return &Reader{
		open: c.Open, positions: positions, names: newNameCache(clock), buckets: map[string]Bucket{},
		pointers: pointers{clock: clock, read: map[string]pointed{}},
	}
}

// Get gives the newest value of the record with the names, standing or not.
func Get[T Record](ctx context.Context, r *Reader, kind Kind[T], names ...string) (Entry[T], error) {
	key, err := kind.Key(names...)
	if err != nil {
		return Entry[T]{}, err
	}
	b, err := r.bucket(ctx, kind.bucket)
	if err != nil {
		return Entry[T]{}, err
	}
	e, err := b.Get(ctx, key)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return Entry[T]{}, notFound(kind, key, names)
	case err != nil:
		return Entry[T]{}, errors.Wrapf(err, "get %s %s", kind.aggregate, key)
	}
	return entryOf(kind, e)
}

func entryOf[T Record](kind Kind[T], e project.Entry) (Entry[T], error) {
	c, err := changeOf[T](e)
	if err != nil {
		return Entry[T]{}, errors.Wrapf(err, "%s: key %s at revision %d is not a %s of ours", kind.bucket, e.Key, e.Revision, kind.aggregate)
	}
	return Entry[T]{Key: e.Key, Revision: e.Revision, Change: c}, nil
}

func notFound[T Record](kind Kind[T], key string, names []string) error {
	all := ""
	if kind.stands != nil {
		all = ", and with --all those that ended"
	}
	err := errors.Newf("there is no %s %s (key %s)", kind.aggregate, quoted(names), key)
	return errors.Mark(errors.WithHintf(err, "get %s lists what there is%s", kind.Plural(), all), es.ErrNotFound)
}

func quoted(names []string) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(parts, " ")
}
