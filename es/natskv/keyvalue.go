package natskv

import (
	"context"
	"iter"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/natsstore"
	"catenary/es/project"
)

// KeyValue is a small bucket that keeps one value a key and that no projector writes: the actor directory, and the marks
// of projectors. It is safe for use by many goroutines.
type KeyValue struct{ source }

var _ project.Marks = (*KeyValue)(nil)

// OpenKeyValue gives access to such a bucket, on the connection given. It gives errors marked [es.ErrUnavailable].
func OpenKeyValue(ctx context.Context, nc *nats.Conn, bucket string) (*KeyValue, error) {
	s, err := open(ctx, nc, bucket)
	if err != nil {
		return nil, err
	}
	if keeps := s.handle.CachedInfo().Config.MaxMsgsPerSubject; keeps != 1 {
		return nil, errors.AssertionFailedf("bucket %s keeps %d values a key: it is a projector's", bucket, keeps)
	}
	return &KeyValue{source: s}, nil
}

// Get gives the value of a key, as the leader has it. It gives errors marked [es.ErrNotFound], [es.ErrUnavailable] or, for
// what is no key, [es.ErrName] or [es.ErrTooLarge].
func (k *KeyValue) Get(ctx context.Context, key string) ([]byte, error) {
	if err := k.checkKey(key); err != nil {
		return nil, err
	}
	m, err := k.newest(ctx, k.prefix+key)
	if err != nil {
		return nil, natsstore.ReadError(errors.Wrapf(err, "bucket %s: key %s", k.bucket, key))
	}
	return m.Data, nil
}

// Set replaces the value of a key; nothing is left of the one before. It gives errors marked as [project.Bucket] says of
// puts.
func (k *KeyValue) Set(ctx context.Context, key string, value []byte) error {
	return k.publish(ctx, key, value, nil)
}

// Create sets the value of a key that has none yet, not even an empty one. It gives errors marked [es.ErrConflict] when it
// has, and others as [KeyValue.Set] does. After one marked [es.ErrUnclear], [KeyValue.Get] tells.
func (k *KeyValue) Create(ctx context.Context, key string, value []byte) error {
	return k.publish(ctx, key, value, nats.Header{jetstream.ExpectedLastSubjSeqHeader: {"0"}})
}

func (k *KeyValue) publish(ctx context.Context, key string, value []byte, header nats.Header) error {
	if err := k.checkKey(key); err != nil {
		return err
	}
	what := func(err error) error { return errors.Wrapf(err, "bucket %s: set key %s", k.bucket, key) }
	// What can't be sent is told from what may have been: only the latter is unclear.
	m := &nats.Msg{Subject: k.prefix + key, Header: header, Data: value}
	if limit := k.nc.MaxPayload(); int64(len(value)) > limit {
		return what(natsstore.SendError(errors.Wrapf(nats.ErrMaxPayload, "%d bytes, the limit is %d", len(value), limit)))
	}
	if k.nc.IsClosed() {
		return what(natsstore.SendError(nats.ErrConnectionClosed))
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := k.js.PublishMsg(ctx, m); err != nil {
		return what(natsstore.AnswerError(err))
	}
	return nil
}

// Record is a value of a [KeyValue] as it is watched.
type Record struct {
	Key   string
	Value []byte
	// Revision grows with every change in the bucket.
	Revision uint64
}

// Watch gives the present value of every key that one of the filters matches, all without one, and then every change as it
// comes, until the context ends, which is its only end without an error. It gives errors marked [es.ErrUnavailable] and,
// for what is no filter, [es.ErrName] or [es.ErrTooLarge].
func (k *KeyValue) Watch(ctx context.Context, filter ...string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		subjects, err := k.subjects(filter)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for m, err := range k.read(ctx, query{subjects: subjects, newest: true, follow: true}) {
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(Record{Key: strings.TrimPrefix(m.subject, k.prefix), Value: m.data, Revision: m.sequence}, nil) {
				return
			}
		}
	}
}
