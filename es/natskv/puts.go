package natskv

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"catenary/internal/answers"
)

const (
	// maxInFlight bounds the values that are not answered yet.
	maxInFlight = 4096
	// maxInFlightBytes bounds their size: a server drops what comes in when 128 MB wait at one stream.
	maxInFlightBytes = 64 << 20
	// ackTimeout is how long a put waits for its answer before it is unclear. A put that was on its way to a leader that is
	// gone never gets one, so this is how long a projector stands still then.
	ackTimeout = 4 * time.Second
)

// puts are the puts into one bucket that are on their way. It is safe for concurrent use. Who only reads a bucket has none, so that
// it listens for answers from the first put on, as long as the connection lasts.
type puts struct {
	nc             *nats.Conn
	bucket, stream string
	publish        func(*nats.Msg) error // on the connection

	messages, bytes *semaphore.Weighted

	mu      sync.Mutex
	answers *answers.Answers[*putting]
}

func newPuts(nc *nats.Conn, bucket, stream string) *puts {
	return &puts{
		nc: nc, bucket: bucket, stream: stream, publish: nc.PublishMsg,
		messages: semaphore.NewWeighted(maxInFlight), bytes: semaphore.NewWeighted(maxInFlightBytes),
	}
}

// listen gives the answers to the puts.
func (s *puts) listen() (*answers.Answers[*putting], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers != nil {
		return s.answers, nil
	}
	a, err := answers.Listen(s.nc, s.stream, ackTimeout, s.answered)
	if err != nil {
		return nil, err
	}
	s.answers = a
	go watch(s.nc, a)
	return a, nil
}

// watch gives up what went out on a connection that is lost, until there is none any more.
func watch(nc *nats.Conn, a *answers.Answers[*putting]) {
	status := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(status)
	for !nc.IsClosed() {
		if <-status == nats.CLOSED {
			break
		}
		a.Disconnected()
	}
	a.Close(nats.ErrConnectionClosed)
}

// enter waits for room.
func (s *puts) enter(ctx context.Context, p *putting) error {
	if err := s.messages.Acquire(ctx, int64(p.values)); err != nil {
		return err
	}
	if err := s.bytes.Acquire(ctx, p.bytes); err != nil {
		s.messages.Release(int64(p.values))
		return err
	}
	return nil
}

// settle gives a put its outcome and its room to others.
func (s *puts) settle(p *putting, err error) {
	s.messages.Release(int64(p.values))
	s.bytes.Release(p.bytes)
	if err != nil {
		err = errors.Wrapf(err, "bucket %s: put key %s as value %d, of %d together", s.bucket, p.key, p.after+1, p.values)
	}
	p.Resolve(err)
}
