package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

const (
	// scrubEvery is how often the whole event stream is read at least.
	scrubEvery = 24 * time.Hour
	// scrubStretch is how many events are read between two rests, and scrubRest how many times as long as the reading a rest is: commands
	// are not to wait for it.
	scrubStretch = 2_000
	scrubRest    = 3
	// scrubRetry is how long is waited when the stream can't be read.
	scrubRetry = 10 * time.Second
)

// errDamagedHint says what to do about events that are missing or changed.
const errDamagedHint = "nothing is recorded over a damaged stream: keep its files, see what is missing with catenary verify, and bring it back from a replica, or with catenary restore from a backup"

// scrub reads the whole event stream and verifies every event, at once and then once a day, until the context ends. A start from a snapshot does
// not read what lies before it, and neither does the server read its files: so this is where a bit that was changed in them is found. It ends
// with an error marked [es.ErrBrokenChain] then, and the writer with it.
func scrub(ctx context.Context, store es.Store, log *slog.Logger) error {
	for {
		begun := time.Now()
		head, err := scrubOnce(ctx, store)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, es.ErrBrokenChain):
			return errors.WithHint(errors.Wrap(err, "the event stream is damaged"), errDamagedHint)
		case err != nil:
			log.Warn("the event stream can't be verified; trying again", "verified", head.Sequence, "reason", err)
			if !rest(ctx, scrubRetry) {
				return nil
			}
			continue
		}
		log.Info("every event is verified", "events", head.Sequence, "took", time.Since(begun))
		if !rest(ctx, scrubEvery) {
			return nil
		}
	}
}

// scrubOnce verifies the events up to the tail.
func scrubOnce(ctx context.Context, store es.Store) (head es.Head, err error) {
	tail, err := store.Tail(ctx)
	if err != nil {
		return head, err
	}
	for head.Sequence < tail {
		begun, until := time.Now(), min(head.Sequence+scrubStretch, tail)
		for _, err := range es.VerifyChain(&head, store.Read(ctx, head.Sequence)) {
			if err != nil {
				return head, err
			}
			if head.Sequence == until {
				break
			}
		}
		if head.Sequence < until {
			return head, errors.Mark(errors.Newf("event %d is missing: the stream ends at event %d, and has nothing after event %d", head.Sequence+1, tail, head.Sequence), es.ErrBrokenChain)
		}
		if !rest(ctx, scrubRest*time.Since(begun)) {
			return head, ctx.Err()
		}
	}
	return head, nil
}

// rest waits, and gives false when the context ends.
func rest(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
