package es

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
)

// Settle finds out what became of an append whose outcome is unclear, by the only proof there is: either its messages
// stand in the stream, or something else stands in their place. Until one of these is so, it sends the same append with the
// same guard again; at most one of all the tries can be stored.
//
// The event that the append follows MUST be known to stand: an append on one that is itself unclear is settled after it.
//
// It returns nil when the messages stand, and an error marked [ErrConflict] when they do not and never will. While the
// store is full or away it goes on trying; when the context ends first, the error is marked [ErrUnclear].
func Settle(ctx context.Context, s Store, after Head, batch []Message) error {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval = 20 * time.Millisecond
	// A command waits for it: what an election has taken already is not to grow by much.
	pace.MaxInterval = 250 * time.Millisecond
	last := after.Sequence + uint64(len(batch))
	for {
		stored, passed, err := standing(ctx, s, after.Sequence, batch)
		switch {
		case err == nil && stored:
			return nil
		case err == nil && passed:
			return errors.Mark(errors.Newf("append after event %d was overtaken: the stream has gone past it", after.Sequence), ErrConflict)
		case err == nil:
			// A conflict here says only that something was stored since the read: the next read tells what.
			if err := Wait(ctx, s.Append(ctx, after, batch)); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Mark(errors.Wrapf(ctx.Err(), "append of events %d to %d is not settled", after.Sequence+1, last), ErrUnclear)
		case <-time.After(pace.NextBackOff()):
		}
	}
}

// standing looks at what stands directly after a sequence: the batch itself, something else, or nothing yet.
func standing(ctx context.Context, s Store, after uint64, batch []Message) (stored, passed bool, err error) {
	tail, err := s.Tail(ctx)
	if err != nil || tail <= after {
		return false, false, err
	}
	m, err := s.Get(ctx, after+1)
	if err != nil {
		return false, false, err
	}
	// The first message tells: an append is stored whole or not at all, and the hash covers the event's own id.
	if m.get(HeaderHash) == batch[0].get(HeaderHash) {
		return true, true, nil
	}
	return false, true, nil
}
