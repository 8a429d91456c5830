package natskv

import (
	"context"
	"iter"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es/natsstore"
	"catenary/es/project"
)

// The vocabulary of buckets is that of package project, which states what a projector needs of them.
type (
	// Entry is one value as it stands in a bucket.
	Entry = project.Entry
	// Meta is what is kept beside a value.
	Meta = project.Meta
	// Position is where a value stands in the order of a bucket.
	Position = project.Position
	// Source names the event a value comes from.
	Source = project.Source
	// State tells how whole a bucket is.
	State = project.BucketState
)

// Bucket is a bucket, or a mirror of one, where every put is refused. It is safe for use by many goroutines.
//
// In a bucket that keeps one value a key no projector writes: its entries carry no Meta.
type Bucket struct {
	source
	mutable bool
	keys    keyNames

	// grouped says that the server takes several values at once.
	grouped bool
	puts    *puts
}

var _ project.Grouping = (*Bucket)(nil)

// Open gives access to a bucket that exists, on the connection given. It gives errors marked [es.ErrUnavailable], and those of
// a bucket that does not exist [project.ErrNoBucket] too.
func Open(ctx context.Context, nc *nats.Conn, bucket string) (*Bucket, error) {
	s, err := open(ctx, nc, bucket)
	if err != nil {
		return nil, err
	}
	found := s.handle.CachedInfo().Config
	return &Bucket{source: s, mutable: found.MaxMsgsPerSubject == 1, grouped: found.AllowBatchPublish, puts: newPuts(nc, bucket, s.stream)}, nil
}

// Name is the bucket's name.
func (b *Bucket) Name() string { return b.bucket }

// State tells how whole the bucket is. It gives errors marked [es.ErrUnavailable].
func (b *Bucket) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := b.handle.Info(ctx)
	if err != nil {
		return State{}, natsstore.ReadError(errors.Wrapf(err, "state of bucket %s", b.bucket))
	}
	s := State{Last: info.State.LastSeq, Messages: info.State.Msgs}
	s.Deleted = s.Last - min(s.Messages, s.Last)
	return s, nil
}

// Tail gives the newest value, as the leader has it. It gives errors marked [es.ErrNotFound] for an empty bucket,
// [project.ErrForeign] or [es.ErrUnavailable].
func (b *Bucket) Tail(ctx context.Context) (Entry, error) {
	return b.one(ctx, b.prefix+">", "newest value")
}

// Get gives the newest value of a key, as the leader has it. It gives errors marked [es.ErrNotFound],
// [project.ErrForeign], [es.ErrUnavailable] or, for what is no key, [es.ErrName] or [es.ErrTooLarge].
func (b *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	if err := b.checkKey(key); err != nil {
		return Entry{}, err
	}
	return b.one(ctx, b.prefix+key, "key "+key)
}

func (b *Bucket) one(ctx context.Context, subject, what string) (Entry, error) {
	m, err := b.newest(ctx, subject)
	if err != nil {
		return Entry{}, natsstore.ReadError(errors.Wrapf(err, "bucket %s: %s", b.bucket, what))
	}
	return b.entry(message{subject: m.Subject, header: m.Header, data: m.Data, sequence: m.Sequence, stored: m.Time})
}

// entry makes an entry of a message. It gives the entry beside an error marked [project.ErrForeign].
func (b *Bucket) entry(m message) (Entry, error) {
	e := Entry{Key: strings.TrimPrefix(m.subject, b.prefix), Value: m.data, Revision: m.sequence, Stored: m.stored.UTC()}
	if b.mutable {
		return e, nil
	}
	var err error
	if e.Meta, err = readHeader(m.header); err != nil {
		e.Meta = Meta{}
		return e, b.foreign(err, e)
	}
	return e, nil
}

// History gives every value of one key, oldest first, however many there are. Errors are as [project.Bucket] says, and
// marked [es.ErrName] or [es.ErrTooLarge] for what is no key.
func (b *Bucket) History(ctx context.Context, key string) iter.Seq2[Entry, error] {
	if err := b.checkKey(key); err != nil {
		return failing(err)
	}
	return b.entries(ctx, query{subjects: []string{b.prefix + key}})
}

// Entries gives the newest value of every key that one of the filters matches, all without one, by revision. A filter is a
// key of which tokens may be wildcards: n1.web, n1.*, *.web. Errors are as [project.Bucket] says, and marked [es.ErrName]
// or [es.ErrTooLarge] for what is no filter.
func (b *Bucket) Entries(ctx context.Context, filter ...string) iter.Seq2[Entry, error] {
	subjects, err := b.subjects(filter)
	if err != nil {
		return failing(err)
	}
	return b.entries(ctx, query{subjects: subjects, newest: true})
}

// Values gives every value of every key that one of the filters matches, oldest first. Errors are as those of [Bucket.Entries].
func (b *Bucket) Values(ctx context.Context, filter ...string) iter.Seq2[Entry, error] {
	subjects, err := b.subjects(filter)
	if err != nil {
		return failing(err)
	}
	return b.entries(ctx, query{subjects: subjects})
}

// All gives every value after a revision, by revision. Errors are as [project.Bucket] says.
func (b *Bucket) All(ctx context.Context, after uint64) iter.Seq2[Entry, error] {
	return b.entries(ctx, query{after: after})
}

// Follow gives every value after a revision and waits for new ones until the context ends, which is its only end without
// an error.
func (b *Bucket) Follow(ctx context.Context, after uint64) iter.Seq2[Entry, error] {
	return b.entries(ctx, query{after: after, follow: true})
}

func (b *Bucket) entries(ctx context.Context, q query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for m, err := range b.read(ctx, q) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(b.entry(m)) {
				return
			}
		}
	}
}

func failing(err error) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { yield(Entry{}, err) }
}
