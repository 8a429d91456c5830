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
	// Clock tells how old a cached name is. Nil means the machine's.
	Clock func() time.Time
}

// Reader reads the records of the chain, from the mirrors in the account of people or from the buckets themselves. It is
// safe for use by many goroutines.
//
// Errors of all reads are marked [es.ErrNotFound] when there is no such record or bucket, [es.ErrUnavailable] when the bus
// can't be reached, and [es.ErrName] for names that no record can have. Hints say what to do.
type Reader struct {
	open  func(ctx context.Context, bucket string) (Bucket, error)
	names nameCache

	mu      sync.Mutex
	buckets map[string]Bucket
}

// NewReader returns a reader. Nothing is opened before it is read.
func NewReader(c Config) *Reader {
	clock := c.Clock
	if clock == nil {
		clock = time.Now
	}
	return &Reader{open: c.Open, names: newNameCache(clock), buckets: map[string]Bucket{}}
}

// bucket opens a bucket once. Two that open it at the same time may both do so, which costs a request and does no harm.
func (r *Reader) bucket(ctx context.Context, name string) (Bucket, error) {
	r.mu.Lock()
	b, ok := r.buckets[name]
	r.mu.Unlock()
	if ok {
		return b, nil
	}
	b, err := r.open(ctx, name)
	if err != nil {
		return nil, errors.Wrapf(err, "open bucket %s", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buckets[name] = b
	return b, nil
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

// Paces of looking whether a copy has caught up: a mirror follows within a millisecond, and asking costs a request.
const (
	waitFirst   = time.Millisecond
	waitLongest = 100 * time.Millisecond
)

// WaitRevision waits until the reader's own copy of a bucket holds at least the revision, so that a write whose position
// named it is seen by the next read. Only the context bounds it; its error then is in the chain, and the message tells how far the
// copy is.
func (r *Reader) WaitRevision(ctx context.Context, bucket string, revision uint64) error {
	b, err := r.bucket(ctx, bucket)
	if err != nil {
		return err
	}
	var seen uint64
	for pause := waitFirst; ; pause = min(2*pause, waitLongest) {
		state, err := b.State(ctx)
		switch {
		case err == nil && state.Last >= revision:
			return nil
		case err == nil:
			seen = state.Last
		case ctx.Err() == nil:
			return errors.Wrapf(err, "wait for revision %d of %s", revision, bucket)
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "wait for revision %d of %s: this copy is at %d", revision, bucket, seen)
		case <-time.After(pause):
		}
	}
}
