package natskv

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

const (
	// requestTimeout bounds a single question to the server, whatever the context allows: one that is lost with a connection
	// never gets an answer.
	requestTimeout = 2 * time.Second
	// prepareTimeout bounds what the server needs time for: to make a stream, or a consumer over many keys.
	prepareTimeout = 30 * time.Second
)

// source is the stream behind a bucket, or its mirror: what every kind of bucket reads from.
type source struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	handle jetstream.Stream
	bucket string
	stream string
	prefix string // of every key's subject
}

func open(ctx context.Context, nc *nats.Conn, bucket string, options ...jetstream.JetStreamOpt) (source, error) {
	s := source{nc: nc, bucket: bucket, stream: topology.BucketStream(bucket), prefix: topology.BucketSubject(bucket, "")}
	var err error
	if s.js, err = jetstream.New(nc, options...); err != nil {
		return s, errors.Wrapf(err, "bucket %s", bucket)
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	err = streams.Insist(ctx, func(ctx context.Context) (err error) {
		s.handle, err = s.js.Stream(ctx, s.stream)
		return err
	})
	if err != nil {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = errors.Wrapf(err, "bucket %s does not exist: start the writer and the projector, which make it", bucket)
			return s, errors.Mark(natsstore.ReadError(errors.Wrapf(err, "open bucket %s", bucket)), project.ErrNoBucket)
		}
		return s, natsstore.ReadError(errors.Wrapf(err, "open bucket %s", bucket))
	}
	return s, nil
}

// last gives the sequence of the newest message on any of the subjects, as the leader has it; 0 when there is none.
func (s *source) last(ctx context.Context, subjects []string) (uint64, error) {
	if len(subjects) == 0 {
		subjects = []string{s.prefix + ">"}
	}
	var last uint64
	for _, subject := range subjects {
		m, err := s.newest(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			continue
		case err != nil:
			return 0, err
		}
		last = max(last, m.Sequence)
	}
	return last, nil
}

// newest gives the newest message on a subject, as the leader has it.
func (s *source) newest(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.handle.GetLastMsgForSubject(ctx, subject)
}
