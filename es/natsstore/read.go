package natsstore

import (
	"context"
	"iter"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
)

// Read gives all messages after a sequence, up to the tail when the reading starts; errors are marked
// [es.ErrUnavailable]. When the caller stops early, the consumer behind it is gone.
func (s *Store) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		tail, err := s.Tail(ctx)
		if err != nil {
			yield(es.Message{}, err)
			return
		}
		s.readUntil(ctx, "", after, tail, yield)
	}
}

// ReadAggregate gives the messages of one aggregate instance, up to its last when the reading starts; errors are marked
// [es.ErrUnavailable].
func (s *Store) ReadAggregate(ctx context.Context, ref es.Ref) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		last, err := s.newest(ctx, ref.Subject())
		if err != nil {
			yield(es.Message{}, err)
			return
		}
		s.readUntil(ctx, ref.Subject(), 0, last, yield)
	}
}

// newest asks the leader for the sequence of the newest event on a subject, zero when there is none: a consumer alone may stand on a server that
// has not got it yet.
func (s *Store) newest(ctx context.Context, subject string) (uint64, error) {
	m, err := ask(ctx, s, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.stream.GetLastMsgForSubject(ctx, subject)
	})
	switch {
	case err == nil:
		return m.Sequence, nil
	case errors.Is(readError(err), es.ErrNotFound):
		return 0, nil
	}
	return 0, readError(errors.Wrapf(err, "read %s", subject))
}

// readUntil gives the messages after a sequence up to and with a last one, which is known to be stored.
func (s *Store) readUntil(ctx context.Context, subject string, after, last uint64, yield func(es.Message, error) bool) {
	if after >= last {
		return
	}
	r := s.newReader(ctx, subject, after, s.config.ReadTimeout)
	defer r.close()
	for r.last < last {
		m, err := r.next()
		if err != nil {
			yield(es.Message{}, errors.Wrapf(err, "read up to event %d", last))
			return
		}
		// What was stored since the reading started is not asked for.
		if m.Sequence > last || !yield(m, nil) {
			return
		}
	}
}

// Follow gives all messages after a sequence and waits for new ones until the context ends. It survives reconnects,
// restarts of the server and changes of its leader. It ends with an error marked [es.ErrUnavailable] only when the
// connection is closed for good.
//
// Several that follow the stream's end get the same messages, which are read once: nobody MUST change them.
func (s *Store) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		s.relay.begin()
		defer s.relay.finish()
		r := s.newReader(ctx, "", after, 0)
		defer r.close()
		place := s.relay.join(after, false)
		leave := func() {
			if place != nil {
				s.relay.leave(place)
				place = nil
			}
		}
		defer leave()
		for {
			if place != nil && !r.relayed(place, yield) {
				return
			}
			leave()
			m, err := r.next()
			if ctx.Err() != nil {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
			if r.idle() {
				place = s.relay.join(r.last, true)
			}
		}
	}
}

// relayed gives what the relay gives, without a consumer of the reader's own, and says whether the reader is to go on after it.
func (r *reader) relayed(place <-chan es.Message, yield func(es.Message, error) bool) bool {
	r.drop()
	for {
		select {
		case m, ok := <-place:
			switch {
			case !ok:
				return true
			case m.Sequence <= r.last:
				continue // the reader was further
			case r.ctx.Err() != nil:
				return false
			}
			r.last = m.Sequence
			if !yield(m, nil) {
				return false
			}
		case <-r.ctx.Done():
			return false
		}
	}
}

// consumerConfig is that of the consumer behind a reader. It lives in memory, without acknowledgements: what was read is
// known by its sequence. It goes by itself when nobody has asked it for a while.
func consumerConfig(subject string, after uint64) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Description:       "Catenary: reads events in order.",
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       after + 1,
		FilterSubject:     subject,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: consumerIdle,
	}
}
