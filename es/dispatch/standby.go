package dispatch

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// followPause is how long a standby waits before it follows again what it could not.
const followPause = time.Second

// Follow keeps the writer's world up with the stream until the context ends, when it returns nil. A writer that has followed
// has little left to read when it is to work: [Writer.Run] goes on from where Follow has come. The two MUST NOT run at the same
// time. It gives the errors of Run that say that the stream can't be understood.
func (w *Writer) Follow(ctx context.Context) error {
	for {
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, es.ErrUnavailable) {
			return err
		}
		w.cfg.Logger.Warn("can't follow the stream, trying again", "after", w.confirmed.Sequence, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// follow comes to the stream's end as a start does, and goes on from there.
func (w *Writer) follow(ctx context.Context) error {
	if err := w.loadBase(ctx); err != nil {
		return err
	}
	if err := w.catchUp(ctx); err != nil {
		return err
	}
	return w.takeIn(w.cfg.Store.Follow(ctx, w.confirmed.Sequence))
}
