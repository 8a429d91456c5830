package es

import (
	"context"

	"github.com/cockroachdb/errors"
)

// HeadAt gives the head of the chain at an event, from which what follows can be verified. The event itself is taken at its word. It
// gives errors marked [ErrBrokenChain] for an event that is missing or carries no hash, and those of the store.
func HeadAt(ctx context.Context, store Store, sequence uint64) (Head, error) {
	if sequence == 0 {
		return Head{}, nil
	}
	m, err := store.Get(ctx, sequence)
	if errors.Is(err, ErrNotFound) {
		return Head{}, errors.Mark(errors.Wrapf(err, "event %d is missing in the stream", sequence), ErrBrokenChain)
	}
	if err != nil {
		return Head{}, err
	}
	h := Head{Sequence: sequence}
	if values := m.Header[HeaderHash]; len(values) == 1 {
		if h.Hash, err = ParseHash(values[0]); err == nil {
			return h, nil
		}
	}
	return Head{}, errors.Mark(errors.Newf("event %d on %s carries no hash", sequence, m.Subject), ErrBrokenChain)
}
