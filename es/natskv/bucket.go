package natskv

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"catenary/es"
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

const (
	// maxInFlight bounds the puts that are not answered yet.
	maxInFlight = 4096
	// maxInFlightBytes bounds their size: a server drops what comes in when 128 MB wait at one stream.
	maxInFlightBytes = 64 << 20
	// ackTimeout is how long a put waits for its answer before it is unclear. A put that was on its way to a leader that is
	// gone never gets one, so this is how long a projector stands still then.
	ackTimeout = 4 * time.Second
)

// Bucket is a bucket, or a mirror of one, where every put is refused. It is safe for use by many goroutines.
//
// In a bucket that keeps one value a key no projector writes: its entries carry no Meta.
type Bucket struct {
	source
	mutable bool
	keys    keyNames

	messages, bytes *semaphore.Weighted
	mu              sync.Mutex
	inFlight        map[*nats.Msg]*putting
}

var _ project.Bucket = (*Bucket)(nil)

// Open gives access to a bucket that exists, on the connection given. It gives errors marked [es.ErrUnavailable], and those of
// a bucket that does not exist [project.ErrNoBucket] too.
func Open(ctx context.Context, nc *nats.Conn, bucket string) (*Bucket, error) {
	b := &Bucket{
		messages: semaphore.NewWeighted(maxInFlight), bytes: semaphore.NewWeighted(maxInFlightBytes),
		inFlight: map[*nats.Msg]*putting{},
	}
	var err error
	b.source, err = open(ctx, nc, bucket,
		jetstream.WithPublishAsyncMaxPending(2*maxInFlight), // our own bound comes first, and waits as long as it takes
		jetstream.WithPublishAsyncTimeout(ackTimeout),
		jetstream.WithPublishAsyncAckHandler(func(_ jetstream.JetStream, m *nats.Msg, ack *jetstream.PubAck) { b.acked(m, ack) }),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { b.failed(m, err) }),
	)
	if err != nil {
		return nil, err
	}
	b.mutable = b.handle.CachedInfo().Config.MaxMsgsPerSubject == 1
	return b, nil
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

// putting is a put on its way.
type putting struct {
	*es.Promise
	key      string
	revision uint64 // the one it gets
	bytes    int64
}

// Put hands over a value, to stand directly after the revision `after`, and returns at once; it waits only while too many
// puts are unanswered, and no longer than the context. Pending gives errors marked as [project.Bucket] says.
func (b *Bucket) Put(ctx context.Context, after uint64, key string, value []byte, meta Meta) es.Pending {
	p := &putting{Promise: es.NewPromise(), key: key, revision: after + 1}
	if err := b.checkKey(key); err != nil {
		p.Resolve(err)
		return p
	}
	m := &nats.Msg{Subject: b.prefix + key, Header: headerOf(meta), Data: value}
	expectLast(m, after)
	p.bytes = min(int64(m.Size()), maxInFlightBytes)
	if err := b.enter(ctx, p); err != nil {
		p.Resolve(errors.Mark(errors.Wrapf(err, "bucket %s: key %s was not sent, since %d values wait for an answer", b.bucket, key, maxInFlight), es.ErrUnavailable))
		return p
	}
	b.mu.Lock()
	b.inFlight[m] = p
	b.mu.Unlock()
	if _, err := b.js.PublishMsgAsync(m); err != nil && b.take(m) != nil {
		b.settle(p, natsstore.SendError(err))
	}
	return p
}

func (b *Bucket) enter(ctx context.Context, p *putting) error {
	if err := b.messages.Acquire(ctx, 1); err != nil {
		return err
	}
	if err := b.bytes.Acquire(ctx, p.bytes); err != nil {
		b.messages.Release(1)
		return err
	}
	return nil
}

// take gives the put that waits for the answer to a message, once.
func (b *Bucket) take(m *nats.Msg) *putting {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.inFlight[m]
	delete(b.inFlight, m)
	return p
}

func (b *Bucket) acked(m *nats.Msg, ack *jetstream.PubAck) {
	p := b.take(m)
	switch {
	case p == nil:
	case ack.Sequence != p.revision || ack.Stream != b.stream:
		b.settle(p, errors.Mark(errors.Newf("the answer names message %d of stream %s", ack.Sequence, ack.Stream), es.ErrUnclear))
	default:
		b.settle(p, nil)
	}
}

func (b *Bucket) failed(m *nats.Msg, err error) {
	if p := b.take(m); p != nil {
		b.settle(p, natsstore.AnswerError(err))
	}
}

// settle gives a put its outcome and its room to others.
func (b *Bucket) settle(p *putting, err error) {
	b.messages.Release(1)
	b.bytes.Release(p.bytes)
	p.Resolve(errors.Wrapf(err, "bucket %s: put key %s as value %d", b.bucket, p.key, p.revision))
}
