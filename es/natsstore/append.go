package natsstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"catenary/es"
	"catenary/internal/answers"
	"catenary/internal/failpoint"
)

// Headers of an atomic batch. The server keeps the messages of a batch id aside until the one that commits it.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// maxHeaderBytes is the server's own limit for the headers of one stored message.
const maxHeaderBytes = 1<<16 - 1

// appending is an append on its way.
type appending struct {
	*es.Promise
	first      uint64  // the sequence of its first message
	end        es.Head // what it leaves when it is stored
	messages   int
	bytes      int64
	identified bool // its last message carries an id for the server
}

// wrap says which append an error is about.
func (a *appending) wrap(err error) error {
	return errors.Wrapf(err, "append of events %d to %d", a.first, a.end.Sequence)
}

// Append hands messages to the stream, to stand directly after a head or not at all. A single message is one guarded
// publish; several are one atomic batch with the guard on its first message. The order of the calls is the order in which
// the stream gets them.
//
// On one server, single messages are pipelined, also after a batch. A batch, and any append to a stream with replicas,
// waits inside Append until the head it follows is known to stand. Append also waits while [Config.MaxInFlight] messages
// are unanswered, and never longer than the context.
//
// Pending gives errors marked [es.ErrConflict], [es.ErrUnclear], [es.ErrTooLarge], [es.ErrFull] or [es.ErrUnavailable].
// Unclear is an append that may have been stored or still be: see [es.Settle].
func (s *Store) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	a := &appending{Promise: es.NewPromise(), first: after.Sequence + 1, messages: len(batch)}
	if err := s.handOver(ctx, a, after, batch); err != nil {
		a.Resolve(err)
	}
	return a
}

// handOver sends an append in its turn. An error means that nothing was sent.
func (s *Store) handOver(ctx context.Context, a *appending, after es.Head, batch []es.Message) (err error) {
	if a.end, err = es.CheckAppend(after, batch); err != nil {
		return err
	}
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return errors.Mark(a.wrap(errors.Wrap(err, "not sent, since an earlier one still waits to be sent")), es.ErrUnavailable)
	}
	defer s.turn.Release(1)
	g, err := s.guardOf(ctx, after, len(batch))
	if err != nil {
		return a.wrap(err)
	}
	messages, err := s.prepare(a, g, batch)
	if err != nil {
		return err
	}
	if err := s.window.enter(ctx, a.messages, a.bytes); err != nil {
		return errors.Mark(a.wrap(errors.Wrapf(err, "not sent, since %d messages wait for an answer", s.config.MaxInFlight)), es.ErrUnavailable)
	}
	if err := s.send(a, messages); err != nil {
		s.settle(a, err)
	}
	return nil
}

// prepare gives the messages as they are sent, or says why the stream would not take them. A message of a batch that is
// refused by the server would be missed only at the commit, without a reason: so the limits are checked here.
func (s *Store) prepare(a *appending, g guard, batch []es.Message) ([]*nats.Msg, error) {
	limit := int(s.nc.MaxPayload())
	if own := int(s.maxMessage.Load()); own >= 0 && own < limit {
		limit = own
	}
	a.identified = !s.replicated.Load()
	messages := make([]*nats.Msg, len(batch))
	var batchID string
	if len(batch) > 1 {
		batchID = nuid.Next() // new for every try: the server may still hold messages of an earlier one
	}
	for i, m := range batch {
		own := serverHeaders{values: make([]string, 0, 4)}
		if i == 0 {
			g.set(&own)
		}
		if i == len(batch)-1 && a.identified {
			own.set(jetstream.MsgIDHeader, messageID(a.end.Hash))
		}
		if batchID != "" {
			own.set(headerBatchID, batchID)
			own.set(headerBatchSequence, strconv.Itoa(i+1))
			if i == len(batch)-1 {
				own.set(headerBatchCommit, "1")
			}
		}
		msg := toNATS(m, &own)
		if failpoint.Planted(failpoint.BodyChanged) && a.first%61 == 0 {
			msg.Data = append(slices.Clone(msg.Data[:len(msg.Data)-1]), msg.Data[len(msg.Data)-1]^1)
		}
		size := storedSize(msg)
		if size > limit {
			return nil, tooLarge(m, "it has %d bytes with its headers, the limit is %d", size, limit)
		}
		if header := size - len(msg.Data); header > maxHeaderBytes {
			return nil, tooLarge(m, "its headers have %d bytes, the limit is %d", header, maxHeaderBytes)
		}
		messages[i] = msg
		a.bytes += int64(size)
	}
	return messages, nil
}

func tooLarge(m es.Message, format string, args ...any) error {
	return errors.Mark(errors.Wrapf(errors.Newf(format, args...), "append to %s", m.Subject), es.ErrTooLarge)
}

// send hands the messages to the connection, in order; the last one asks for the answer. An error means that the append is
// over.
func (s *Store) send(a *appending, messages []*nats.Msg) error {
	last := len(messages) - 1
	for i, m := range messages[:last] {
		if i == last/2 {
			failpoint.Pass(failpoint.StoreBatch)
		}
		if err := s.nc.PublishMsg(m); err != nil {
			// Without its commit the server lets go of the batch: whatever was written, nothing is stored.
			kind := sendError(err)
			if errors.Is(kind, es.ErrUnclear) {
				kind = errors.Mark(err, es.ErrUnavailable)
			}
			return a.wrap(kind)
		}
	}
	reply, err := s.answers.Expect(a)
	if err != nil {
		return errors.Mark(a.wrap(err), es.ErrUnavailable)
	}
	s.mu.Lock()
	s.byEnd[a.end] = a
	s.mu.Unlock()
	messages[last].Reply = reply
	if err := s.nc.PublishMsg(messages[last]); err != nil && s.answers.Forget(reply) {
		return a.wrap(sendError(err))
	}
	return nil
}

// answered takes in what an append has come to. A confirmation of a message that was sent again, and stood already, is as good as
// the first when it names the right place: the message's id covers its content and all before it.
func (s *Store) answered(a *appending, answer answers.Answer, err error) {
	if err == nil {
		err = failpoint.Fail(failpoint.StoreAnswerLost)
	}
	if err == nil && (answer.Sequence != a.end.Sequence || answer.Stream != s.config.Stream) {
		err = errors.Newf("the answer names event %d of stream %s", answer.Sequence, answer.Stream)
	}
	if err != nil {
		err = a.wrap(answerError(err))
	}
	s.settle(a, err)
}

// settle gives an append its outcome, and its room in the window to others.
func (s *Store) settle(a *appending, err error) {
	s.mu.Lock()
	if s.byEnd[a.end] == a {
		delete(s.byEnd, a.end)
	}
	if err == nil && (a.end.Sequence > s.stands.head.Sequence || s.stands.doubtful) {
		s.stands = standing{head: a.end, identified: a.identified}
	}
	s.mu.Unlock()
	a.Resolve(err)
	s.window.leave(a.messages, a.bytes)
}
