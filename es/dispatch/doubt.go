package dispatch

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Doubt makes a writer at work compare what it knows to stand with the stream, as is due when the connection was lost: the server may have come
// back with yesterday's state. Otherwise that is noticed only by the next command. It does not wait; the writer ends with an error marked
// [ErrEventsLost] when the stream is another.
func (w *Writer) Doubt() {
	select {
	case w.doubts <- struct{}{}:
	default: // it is to be compared already
	}
}

// compare begins to look whether the newest event that is known to stand does.
func (w *Writer) compare(ctx context.Context) {
	if w.comparing || w.confirmed.Sequence == 0 {
		return
	}
	w.comparing = true
	confirmed := w.confirmed
	w.readers.Go(func() { w.compared <- w.stillStands(ctx, confirmed) })
}

// stillStands asks until it is answered. An event that is not there is looked for again: a server that has just become the stream's leader may be
// behind for a moment.
func (w *Writer) stillStands(ctx context.Context, head es.Head) error {
	missed := 0
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, w.cfg.Patience/2)
		m, err := w.cfg.Store.Get(bounded, head.Sequence)
		cancel()
		switch {
		case err == nil:
			if hash, bad := m.Hash(); bad == nil && hash == head.Hash {
				return nil
			}
			return errors.Wrapf(ErrEventsLost, "the stream's event %d is not the one with the hash %.16s… that this writer has seen: %s", head.Sequence, head.Hash, bringBack)
		case errors.Is(err, es.ErrNotFound):
			if missed++; missed == lostLooks {
				return errors.Wrapf(ErrEventsLost, "the stream has no event %d, which this writer has seen: %s", head.Sequence, bringBack)
			}
		}
		pause(ctx, max(w.cfg.Patience/4/lostLooks, time.Millisecond))
	}
	return nil
}

// bringBack says what to do about a stream that has lost events.
const bringBack = "bring the stream back from a replica or a backup; a writer that is started again compares it with its witnesses before it goes on"
