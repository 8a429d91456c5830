package memstore

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Snapshots keeps bases in memory, safe for use by many goroutines. The zero value is ready for use.
type Snapshots struct {
	mu    sync.Mutex
	bases map[uint64][]byte
}

// keptBases is how many stay: the newest, and the one before, which somebody may be reading.
const keptBases = 2

// Save keeps what write writes as the base at an event. It gives the errors of write, and the context's.
func (s *Snapshots) Save(ctx context.Context, sequence uint64, write func(io.Writer) error) error {
	var data bytes.Buffer
	if err := write(&data); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return errors.Mark(err, es.ErrUnavailable)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bases == nil {
		s.bases = map[uint64][]byte{}
	}
	s.bases[sequence] = data.Bytes()
	for len(s.bases) > keptBases {
		oldest := sequence
		for other := range s.bases {
			oldest = min(oldest, other)
		}
		delete(s.bases, oldest)
	}
	return nil
}

// Load opens the newest base below an event; zero means the newest of all. It gives errors marked [es.ErrNotFound].
func (s *Snapshots) Load(_ context.Context, below uint64) (sequence uint64, base io.ReadCloser, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.bases {
		if other > sequence && (below == 0 || other < below) {
			sequence = other
		}
	}
	if sequence == 0 {
		return 0, nil, errors.Mark(errors.Newf("no snapshot below event %d", below), es.ErrNotFound)
	}
	return sequence, io.NopCloser(bytes.NewReader(s.bases[sequence])), nil
}
