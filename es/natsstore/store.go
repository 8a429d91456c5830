package natsstore

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"catenary/es"
	"catenary/internal/answers"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

// Store is an [es.Store] over one JetStream stream, safe for use by many goroutines. Make it with [Open].
type Store struct {
	config Config
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	// maxMessage is the stream's limit for one message, headers included; -1 means none of its own.
	maxMessage atomic.Int32
	// replicated is set when several servers hold the stream.
	replicated atomic.Bool

	turn    *semaphore.Weighted // who has it may send
	window  *window
	answers *answers.Answers[*appending]
	relay   relay
	status  chan nats.Status
	close   sync.Once

	mu         sync.Mutex
	connection context.Context        // ends when the connection to the server is lost
	lost       context.CancelFunc     // ends it
	byEnd      map[es.Head]*appending // what is in flight, by the head it leaves
	stands     standing               // the newest head that is known to stand
}

var errStoreClosed = errors.New("the store is closed")

// Open gives the store over an existing stream, which [Ensure] has made. The connection stays the caller's; the store
// MUST be closed before it or with it. It gives a [*ConfigError] for a stream that is not safe to keep events in, and
// errors marked [es.ErrUnavailable].
func Open(ctx context.Context, nc *nats.Conn, config Config) (*Store, error) {
	patience := config.AckTimeout
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		config: config, nc: nc,
		turn: semaphore.NewWeighted(1), window: newWindow(config.MaxInFlight, config.MaxInFlightBytes),
		byEnd: map[es.Head]*appending{},
	}
	s.relay.store = s
	s.connection, s.lost = context.WithCancel(context.Background())
	if s.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(config.RequestTimeout)); err != nil {
		return nil, errors.Wrap(err, "event store")
	}
	s.stream, err = ask(ctx, s, func(ctx context.Context) (jetstream.Stream, error) { return s.js.Stream(ctx, config.Stream) })
	if err != nil {
		if isCode(err, jetstream.JSErrCodeStreamNotFound) {
			err = errors.WithHint(err, "start the embedded server, or create the stream, before the processes that use it")
		}
		return nil, readError(errors.Wrapf(err, "open event stream %s", config.Stream))
	}
	found := s.stream.CachedInfo().Config
	// How many servers hold it, and how large its messages may be, is for whoever makes it to check.
	want := topology.Events(topology.Options{})
	want.MaxMsgSize = found.MaxMsgSize
	if config.Restoring != "" {
		want.Metadata = map[string]string{streams.RestoringKey: config.Restoring}
	}
	check := streams.Check
	if config.Reading {
		check = streams.CheckRestored
	}
	if err := check(keepsEvents, want, found); err != nil {
		return nil, err
	}
	s.learn(found)
	if patience == 0 {
		s.config.AckTimeout = ackTimeout(found.Replicas)
	}
	if s.answers, err = answers.Listen(nc, config.Stream, s.config.AckTimeout, s.answered); err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "listen for the answers of event stream %s", config.Stream), es.ErrUnavailable)
	}
	s.status = nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED, nats.CLOSED)
	go s.watch()
	return s, nil
}

// Close gives up what is in flight, as unclear, and refuses further appends. The connection stays open.
func (s *Store) Close() {
	s.close.Do(func() {
		s.nc.RemoveStatusListener(s.status)
		s.answers.Close(errStoreClosed)
	})
}

// watch doubts what stands when the connection was lost, and gives up what was in flight: no answer can come any more, and
// nobody would notice before the timeout.
func (s *Store) watch() {
	defer s.reconnect()
	for status := range s.status {
		s.doubt()
		s.reconnect()
		switch status {
		case nats.CLOSED:
			s.answers.GiveUp(nats.ErrConnectionClosed)
			return
		default:
			s.answers.Disconnected()
		}
	}
}

// reconnect lets go of the questions that went out on a connection which is gone.
func (s *Store) reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost()
	s.connection, s.lost = context.WithCancel(context.Background())
}

// learn takes in what an operator may change while the store is open.
func (s *Store) learn(c jetstream.StreamConfig) {
	s.maxMessage.Store(c.MaxMsgSize)
	s.replicated.Store(c.Replicas > 1)
}

// Tail gives the stream's last sequence as its leader knows it, 0 when it is empty; errors are marked
// [es.ErrUnavailable].
func (s *Store) Tail(ctx context.Context) (uint64, error) {
	info, err := ask(ctx, s, func(ctx context.Context) (*jetstream.StreamInfo, error) { return s.stream.Info(ctx) })
	if err != nil {
		return 0, readError(errors.Wrapf(err, "tail of event stream %s", s.config.Stream))
	}
	s.learn(info.Config)
	return info.State.LastSeq, nil
}

// Get gives the message at a sequence, from the stream's leader; errors are marked [es.ErrNotFound] or
// [es.ErrUnavailable].
func (s *Store) Get(ctx context.Context, sequence uint64) (es.Message, error) {
	m, err := s.get(ctx, sequence)
	if err != nil {
		return es.Message{}, err
	}
	return fromRaw(m), nil
}

// get gives a message with the server's own headers.
func (s *Store) get(ctx context.Context, sequence uint64) (*jetstream.RawStreamMsg, error) {
	if sequence == 0 {
		return nil, errors.Mark(errors.New("event 0: sequences start at 1"), es.ErrNotFound)
	}
	m, err := ask(ctx, s, func(ctx context.Context) (*jetstream.RawStreamMsg, error) { return s.stream.GetMsg(ctx, sequence) })
	if err != nil {
		return nil, readError(errors.Wrapf(err, "get event %d of stream %s", sequence, s.config.Stream))
	}
	return m, nil
}
