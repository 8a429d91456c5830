package natskv

import (
	"context"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"catenary/es"
	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/internal/answers"
)

// putting is a put on its way: of one value, or of several together.
type putting struct {
	*es.Promise
	key    string // the first one's
	after  uint64 // the revision it is to follow
	values int
	bytes  int64
}

// Put hands over a value, to stand directly after the revision `after`, and returns at once; it waits only while too many
// puts are unanswered, and no longer than the context. Pending gives errors marked as [project.Bucket] says.
func (b *Bucket) Put(ctx context.Context, after uint64, key string, value []byte, meta Meta) es.Pending {
	return b.put(ctx, after, []project.Placed{{Key: key, Data: value, Meta: meta}})
}

// MaxGroup is how many values [Bucket.PutAll] takes at once; 1 where the bucket's stream takes no batches, as one that was made by
// an older version until a projector has started.
func (b *Bucket) MaxGroup() int {
	if !b.grouped {
		return 1
	}
	return maxGroup
}

// PutAll hands over values, to stand directly after the revision `after` and in this order, and returns as Put does. The first
// one that is not stored ends them: none after it is. Pending gives errors marked as [project.Grouping] says.
func (b *Bucket) PutAll(ctx context.Context, after uint64, values []project.Placed) es.Pending {
	if len(values) > b.MaxGroup() {
		p := es.NewPromise()
		p.Resolve(errors.AssertionFailedf("bucket %s: %d values at once, it takes %d", b.bucket, len(values), b.MaxGroup()))
		return p
	}
	return b.put(ctx, after, values)
}

func (b *Bucket) put(ctx context.Context, after uint64, values []project.Placed) es.Pending {
	p := &putting{Promise: es.NewPromise(), key: values[0].Key, after: after, values: len(values)}
	messages, err := b.prepare(p, values)
	if err != nil {
		p.Resolve(err)
		return p
	}
	if err := b.puts.enter(ctx, p); err != nil {
		p.Resolve(errors.Mark(errors.Wrapf(err, "bucket %s: key %s was not sent, since %d values wait for an answer", b.bucket, p.key, maxInFlight), es.ErrUnavailable))
		return p
	}
	if err := b.puts.send(p, messages); err != nil {
		b.puts.settle(p, err)
	}
	return p
}

// prepare gives the messages as they are sent, each guarded by the one before it. Nothing of a group is sent that holds a value which
// can't be stored.
func (b *Bucket) prepare(p *putting, values []project.Placed) ([]*nats.Msg, error) {
	limit := int(b.nc.MaxPayload())
	messages := make([]*nats.Msg, len(values))
	for i, v := range values {
		if err := b.checkKey(v.Key); err != nil {
			return nil, err
		}
		header, size := headerOf(v.Meta, p.after+uint64(i))
		size += len(v.Data)
		if limit > 0 && size > limit {
			return nil, errors.Mark(errors.Newf("bucket %s: the value of key %s has %d bytes with its headers, the server's limit is %d", b.bucket, v.Key, size, limit), es.ErrTooLarge)
		}
		messages[i] = &nats.Msg{Subject: b.prefix + v.Key, Header: header, Data: v.Data}
		p.bytes += int64(size)
	}
	p.bytes = min(p.bytes, maxInFlightBytes)
	return messages, nil
}

// What a message does to the batch that it belongs to. The server reads that from the subject its answer goes to:
// <subject>.<batch>.<answer after so many messages>.<when one is missing>.<number>.<operation>.$FI. A batch that is to fail when
// one is missing ends with the first message that is refused, also by its own guard, and answers with how many it has stored.
const (
	batchStart  = ".0.$FI"
	batchAppend = ".1.$FI"
	batchCommit = ".2.$FI"
	// batchMode asks for no answer before the one to the commit, as long as a batch has fewer messages, and for the end at the first that
	// is missing.
	batchMode = ".500.fail."
)

// maxGroup is how many values are put at once at most: enough that the one answer costs nothing, and below the 500 of batchMode.
const maxGroup = 64

// send hands messages to the connection, in order. An error means that the put is over.
func (s *puts) send(p *putting, messages []*nats.Msg) error {
	answers, err := s.listen()
	if err != nil {
		return natsstore.SendError(err)
	}
	reply, err := answers.Expect(p)
	if err != nil {
		return natsstore.SendError(err)
	}
	if len(messages) == 1 {
		messages[0].Reply = reply
	} else {
		inBatch(messages, reply)
	}
	for i, m := range messages {
		err := s.publish(m)
		switch {
		case err == nil:
		case !answers.Forget(reply):
			return nil // it has its outcome already
		case i > 0:
			return errors.Mark(err, es.ErrUnclear) // those before it may be stored
		default:
			return natsstore.SendError(err)
		}
	}
	return nil
}

// inBatch makes messages a batch, whose answer comes to a subject. An id is used once: the server may still hold messages of an
// earlier batch.
func inBatch(messages []*nats.Msg, reply string) {
	prefix := reply + "." + nuid.Next() + batchMode
	for i, m := range messages {
		does := batchAppend
		switch i {
		case 0:
			does = batchStart
		case len(messages) - 1:
			does = batchCommit
		}
		m.Reply = prefix + strconv.Itoa(i+1) + does
	}
}

// answered takes in what a put has come to.
func (s *puts) answered(p *putting, a answers.Answer, err error) {
	last, count := p.after+uint64(p.values), uint64(p.values)
	if p.values == 1 {
		count = 0 // a single message is none of a batch
	}
	switch {
	case err != nil:
		err = natsstore.AnswerError(err)
	case a.Stream != s.stream || a.Count > count || a.Count == count && a.Sequence != last:
		err = errors.Mark(errors.Newf("the answer names message %d of stream %s, and %d messages", a.Sequence, a.Stream, a.Count), es.ErrUnclear)
	case a.Count < count && a.Why != nil:
		err = errors.Wrapf(natsstore.AnswerError(a.Why), "%d of %d values were stored", a.Count, count)
	case a.Count < count:
		err = errors.Mark(errors.Newf("%d of %d values were stored", a.Count, count), es.ErrUnclear)
	}
	s.settle(p, err)
}
