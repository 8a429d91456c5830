package natsstore

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/internal/pull"
)

const (
	// consumerIdle is how long the server keeps a consumer that nobody asks, such as one of a killed process.
	consumerIdle = 30 * time.Second
	// forgetTimeout bounds the deletion of a consumer that is no longer needed; without it consumerIdle does it.
	forgetTimeout = time.Second
)

// errReconnected is why a reader lets go of a consumer that may still be there.
var errReconnected = errors.New("the connection was lost and made again")

// reader gives the messages of the stream after a sequence, in order, until its context ends. When its consumer is lost,
// or has lost messages on the way, it makes a new one that goes on after the last message given.
//
// The ordered consumer of nats.go does the same, but notices the end of a context only between its tries, which may be
// 20 seconds apart while the server is away.
type reader struct {
	store   *Store
	ctx     context.Context
	end     context.CancelCauseFunc
	subject string   // empty means all
	last    uint64   // the sequence of the last message given
	session *session // nil while there is no consumer
	pace    *backoff.ExponentialBackOff
	trouble error // what went wrong last

	// limit is how long the reader waits for one message; zero means for ever. The timer ends the context.
	limit time.Duration
	timer *time.Timer
}

// session is the time with one consumer.
type session struct {
	name     string
	messages *pull.Messages
	fresh    bool // it has given nothing yet
	ctx      context.Context
	status   chan nats.Status
}

// newReader makes a reader of all messages, or of one subject's. It MUST be closed.
func (s *Store) newReader(ctx context.Context, subject string, after uint64, limit time.Duration) *reader {
	r := &reader{store: s, subject: subject, last: after, limit: limit, pace: backoff.NewExponentialBackOff()}
	r.pace.InitialInterval = 20 * time.Millisecond
	r.pace.MaxInterval = 2 * time.Second
	r.ctx, r.end = context.WithCancelCause(ctx)
	if limit > 0 {
		r.timer = time.AfterFunc(limit, func() { r.end(errors.Newf("the next event did not come within %v", limit)) })
	}
	return r
}

func (r *reader) close() {
	r.end(nil)
	if r.timer != nil {
		r.timer.Stop()
	}
	r.drop()
}

// next waits for the next message. It gives errors marked [es.ErrUnavailable]: when the context has ended, when the
// reader's patience has, or when the connection is closed for good.
func (r *reader) next() (es.Message, error) {
	if r.timer != nil && r.idle() {
		r.timer.Reset(r.limit)
		defer r.timer.Stop()
	}
	for {
		if r.session == nil && !r.open() {
			return es.Message{}, r.failure()
		}
		m, err := r.session.next()
		if err != nil {
			r.trouble = err
			r.drop()
			if !r.pause() {
				return es.Message{}, r.failure()
			}
			continue
		}
		if m.Sequence <= r.last {
			return es.Message{}, readError(errors.Newf("the stream gave event %d after event %d", m.Sequence, r.last))
		}
		if r.session.fresh {
			r.session.fresh = false
			r.pace.Reset()
		}
		r.last = m.Sequence
		return m, nil
	}
}

// idle says whether the next message has not come yet.
func (r *reader) idle() bool { return r.session == nil || !r.session.messages.AtHand() }

// open makes a consumer that goes on after the last message given. It tries until it has one, the context ends or the
// connection is closed for good; then it gives false.
func (r *reader) open() bool {
	for {
		if r.session, r.trouble = r.start(); r.trouble == nil {
			return true
		}
		if !r.pause() {
			return false
		}
	}
}

func (r *reader) start() (*session, error) {
	// Listening starts before the consumer is made, so that no reconnect is missed.
	status := r.store.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	messages, name, err := r.consume()
	if err != nil {
		r.store.nc.RemoveStatusListener(status)
		return nil, err
	}
	live, lose := context.WithCancelCause(r.ctx)
	go func() {
		defer lose(nil)
		for s := range status {
			if s == nats.CLOSED {
				lose(nats.ErrConnectionClosed)
			}
			lose(errReconnected)
		}
	}()
	return &session{name: name, messages: messages, fresh: true, ctx: live, status: status}, nil
}

func (r *reader) consume() (*pull.Messages, string, error) {
	// One whose making was not answered, or answered late, goes after consumerIdle.
	consumer, err := ask(r.ctx, r.store, func(ctx context.Context) (jetstream.Consumer, error) {
		return r.store.js.CreateConsumer(ctx, r.store.config.Stream, consumerConfig(r.subject, r.last))
	})
	if err != nil {
		return nil, "", err
	}
	name := consumer.CachedInfo().Name
	messages, err := pull.From(r.store.nc, r.store.config.Stream, name)
	if err != nil {
		r.forget(name)
		return nil, "", err
	}
	return messages, name, nil
}

func (s *session) next() (es.Message, error) {
	m, err := s.messages.Next(s.ctx)
	if err != nil {
		return es.Message{}, err
	}
	return fromNATS(m), nil
}

// drop lets go of the consumer. Nothing of it is left when drop returns, on the server neither, if that can be reached.
func (r *reader) drop() {
	if r.session == nil {
		return
	}
	r.session.messages.Stop()
	r.store.nc.RemoveStatusListener(r.session.status)
	r.forget(r.session.name)
	r.session = nil
}

// forget deletes a consumer. A failure needs no answer: the server does the same after consumerIdle.
func (r *reader) forget(name string) {
	if !r.store.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), forgetTimeout)
	defer cancel()
	_ = r.store.js.DeleteConsumer(ctx, r.store.config.Stream, name)
}

// pause waits before the next try. It gives false when there is to be none.
func (r *reader) pause() bool {
	if r.ctx.Err() != nil || r.store.nc.IsClosed() {
		return false
	}
	timer := time.NewTimer(r.pace.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// failure says why there is no next message.
func (r *reader) failure() error {
	cause := context.Cause(r.ctx)
	if cause == nil {
		cause = nats.ErrConnectionClosed
	}
	if r.trouble != nil && !errors.Is(r.trouble, cause) {
		cause = errors.Wrapf(cause, "%v", r.trouble)
	}
	return readError(errors.Wrapf(cause, "event stream %s after event %d", r.store.config.Stream, r.last))
}
