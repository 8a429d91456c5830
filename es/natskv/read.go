package natskv

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/natsstore"
	"catenary/internal/pull"
	"catenary/internal/streams"
)

const (
	// stall is how long a bounded read waits for a message that the leader has: the copy it reads from lags behind, or the
	// message was replaced meanwhile. The leader is asked again then.
	stall = 2 * time.Second
	// consumerIdle is how long the server keeps a consumer that nobody asks, such as one of a killed process.
	consumerIdle = 30 * time.Second
	// forgetTimeout bounds the deletion of a consumer; without it consumerIdle does it.
	forgetTimeout = time.Second
	// maxTries bounds how often a bounded read goes on after trouble without having got anything.
	maxTries = 6
)

// Why a read lets go of its consumer.
var (
	errReconnected = errors.New("the connection was lost and made again")
	errStalled     = errors.New("messages that stand do not come")
)

// query is what a read wants.
type query struct {
	subjects []string // none means all
	after    uint64
	newest   bool // only the newest message of each subject
	follow   bool // wait for more instead of ending
	bare     bool // without the messages' data
}

// message is a message as it is read.
type message struct {
	subject  string
	header   nats.Header
	data     []byte
	sequence uint64
	stored   time.Time
}

// read gives messages in order. A bounded read ends with the newest that the leader had; the end of a read that follows is
// the context's. When the consumer is lost, or messages are on the way, it goes on after the last message given. It gives
// errors marked [es.ErrUnavailable].
func (s *source) read(ctx context.Context, q query) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		r := &reading{source: s, query: q, last: q.after, yield: yield}
		if err := r.run(ctx); err != nil {
			yield(message{}, natsstore.ReadError(errors.Wrapf(err, "read bucket %s after value %d", s.bucket, r.last)))
		}
	}
}

// reading is a read on its way.
type reading struct {
	*source
	query query
	yield func(message, error) bool
	last  uint64 // the sequence of the last message given
	until uint64 // where a bounded read ends
	over  bool   // whoever reads has enough
}

// run reads until the end, or gives why it can't.
func (r *reading) run(ctx context.Context) error {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = 20*time.Millisecond, 2*time.Second
	for tries := 0; ; tries++ {
		from := r.last
		err := r.attempt(ctx)
		switch {
		case r.over || err == nil:
			return nil
		case ctx.Err() != nil:
			if r.query.follow {
				return nil
			}
			return ctx.Err()
		case r.nc.IsClosed():
			return nats.ErrConnectionClosed
		}
		if r.last > from {
			tries = 0
			pace.Reset()
		}
		if !r.query.follow && tries+1 >= maxTries {
			return err
		}
		timer := time.NewTimer(pace.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// attempt reads with one consumer. Nil means that the read is at its end.
func (r *reading) attempt(ctx context.Context) error {
	r.until = math.MaxUint64
	if !r.query.follow {
		last, err := r.source.last(ctx, r.query.subjects)
		if err != nil {
			return err
		}
		if r.until = last; last <= r.last {
			return nil
		}
	}
	// Listening starts before the consumer is made, so that no reconnect is missed.
	status := r.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	live, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	defer r.nc.RemoveStatusListener(status)
	go func() {
		for s := range status {
			if s == nats.CLOSED {
				lose(nats.ErrConnectionClosed)
			}
			lose(errReconnected)
		}
	}()
	consumer, err := r.consumer(live)
	if err != nil {
		return err
	}
	defer r.forget(ctx, consumer.CachedInfo().Name)
	if r.query.newest && !r.query.follow {
		// A value that was replaced between the look and the consumer's making does not come: only its successor does,
		// which lies behind the end found then. So the end is found anew, behind all that the consumer has to give.
		if r.until, err = r.source.last(live, r.query.subjects); err != nil {
			return err
		}
	}
	messages, err := pull.From(r.nc, r.stream, consumer.CachedInfo().Name)
	if err != nil {
		return err
	}
	defer messages.Stop()
	return r.consume(live, lose, messages)
}

func (r *reading) consumer(ctx context.Context) (jetstream.Consumer, error) {
	cfg := jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerIdle,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.last + 1, HeadersOnly: r.query.bare,
	}
	if r.query.newest {
		// After an interruption the newest ones are asked for again, and those given already are left out.
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverLastPerSubjectPolicy, 0
	}
	switch {
	case len(r.query.subjects) == 1:
		cfg.FilterSubject = r.query.subjects[0]
	case len(r.query.subjects) > 1:
		cfg.FilterSubjects = r.query.subjects
	case r.query.newest:
		cfg.FilterSubject = r.prefix + ">"
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	var consumer jetstream.Consumer
	// One whose making was not answered goes after consumerIdle.
	err := streams.Insist(ctx, func(ctx context.Context) (err error) {
		consumer, err = r.js.CreateConsumer(ctx, r.stream, cfg)
		return err
	})
	return consumer, err
}

func (r *reading) consume(live context.Context, lose context.CancelCauseFunc, messages *pull.Messages) error {
	var patience *time.Timer
	if !r.query.follow {
		patience = time.AfterFunc(stall, func() { lose(errStalled) })
		defer patience.Stop()
	}
	for {
		m, err := messages.Next(live)
		if err != nil {
			return err
		}
		if m.Sequence <= r.last {
			continue
		}
		if patience != nil {
			patience.Stop() // whoever reads may take their time
		}
		r.last = m.Sequence
		if !r.yield(message{subject: m.Subject, header: m.Header, data: m.Data, sequence: r.last, stored: time.Unix(0, m.Stored)}, nil) {
			r.over = true
			return nil
		}
		if r.last >= r.until {
			return nil
		}
		if patience != nil {
			patience.Reset(stall)
		}
	}
}

// forget deletes a consumer. A failure needs no answer: the server does the same after consumerIdle.
func (r *reading) forget(ctx context.Context, name string) {
	if !r.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, r.stream, name)
}
