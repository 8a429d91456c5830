package proof

import (
	"context"
	"iter"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/natsstore"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

// requestTimeout bounds one question to the server, which takes milliseconds, and with replicas a second or two.
const requestTimeout = 5 * time.Second

// StreamCheckpoints keeps checkpoints in a stream of their own.
type StreamCheckpoints struct {
	js     jetstream.JetStream
	stream jetstream.Stream
}

var _ Checkpoints = (*StreamCheckpoints)(nil)

// EnsureCheckpoints makes the stream of checkpoints, or checks that the one that exists keeps them. It gives a
// [*natsstore.ConfigError] for a stream that is not safe, and errors marked [es.ErrFull] or [es.ErrUnavailable].
func EnsureCheckpoints(ctx context.Context, nc *nats.Conn, o topology.Options) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrap(err, "stream of checkpoints")
	}
	_, err = streams.Ensure(ctx, js, streams.Plan{Want: topology.Checkpoints(o), Keeps: "checkpoints", Kind: natsstore.EnsureError})
	return err
}

// OpenCheckpoints gives access to the stream of checkpoints, which [EnsureCheckpoints] has made. It gives errors marked
// [es.ErrUnavailable].
func OpenCheckpoints(ctx context.Context, nc *nats.Conn) (*StreamCheckpoints, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, errors.Wrap(err, "open the checkpoints")
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, topology.CheckpointStream)
	if err != nil {
		return nil, natsstore.ReadError(errors.Wrapf(err, "open stream %s", topology.CheckpointStream))
	}
	return &StreamCheckpoints{js: js, stream: stream}, nil
}

// Newest implements [Checkpoints].
func (s *StreamCheckpoints) Newest(ctx context.Context) ([]byte, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := s.stream.GetLastMsgForSubject(ctx, topology.CheckpointSubject)
	if err != nil {
		err = natsstore.ReadError(errors.Wrap(err, "newest checkpoint"))
		if errors.Is(err, es.ErrNotFound) {
			return nil, 0, nil
		}
		return nil, 0, err
	}
	return m.Data, m.Sequence, nil
}

// Append implements [Checkpoints].
func (s *StreamCheckpoints) Append(ctx context.Context, after uint64, signed []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.js.Publish(ctx, topology.CheckpointSubject, signed, jetstream.WithExpectLastSequence(after))
	if err != nil {
		return errors.Wrap(natsstore.AnswerError(err), "keep a checkpoint")
	}
	return nil
}

// After implements [Checkpoints].
func (s *StreamCheckpoints) After(ctx context.Context, place uint64) iter.Seq2[Kept, error] {
	return func(yield func(Kept, error) bool) {
		info, err := s.stream.Info(ctx)
		if err != nil {
			yield(Kept{}, natsstore.ReadError(errors.Wrap(err, "read the checkpoints")))
			return
		}
		for next := max(info.State.FirstSeq, place+1); next <= info.State.LastSeq; next++ {
			m, err := s.stream.GetMsg(ctx, next)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // it has become one of the oldest, and is gone
			}
			if err != nil {
				yield(Kept{}, natsstore.ReadError(errors.Wrapf(err, "checkpoint %d", next)))
				return
			}
			if !yield(Kept{Place: m.Sequence, Signed: m.Data}, nil) {
				return
			}
		}
	}
}
