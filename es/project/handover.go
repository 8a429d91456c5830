package project

import (
	"context"
	"fmt"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
)

// handOver runs in the view's goroutine, which puts nothing meanwhile. It keeps others from putting into the present
// generation, brings the next one as far as that has come, and its copies too, and only then sends readers there: who has
// read the present generation finds nothing older in the next.
//
// The view stands still meanwhile, so all up to that is bounded: what takes longer leaves the present generation serving.
func (b *rebuilding) handOver(ctx context.Context, p Pointer, builder *worker) error {
	generations, w := b.cfg.Generations, b.worker
	if paused := w.control.Load().Paused; paused != nil {
		return errors.Mark(errors.Mark(errors.Newf("the view was paused by event %d (%s) before it could go on with bucket %s; that is gone on with when it is resumed", paused.Order, paused.Reason, p.Next.Bucket), ErrStopped), errPaused)
	}
	err := b.draw(ctx, p, builder)
	if err == nil {
		err = failpoint.Fail(failpoint.RebuildBeforePoint)
	}
	if err == nil {
		err = b.advance(ctx, p)
	}
	if err != nil {
		// The answer may be lost, or another projector was faster: the pointer tells.
		switch now, lookErr := generations.Pointer(ctx, w.name); {
		case lookErr == nil && now.Bucket == p.Next.Bucket:
		case lookErr == nil && now.Bucket != p.Bucket:
			w.view = nil // readers were sent to yet another one, and the present one stays closed
			return err
		default:
			w.view = nil
			return errors.CombineErrors(err, b.unfence(ctx, p))
		}
	}
	failpoint.Pass(failpoint.RebuildAfterPoint)
	if err := generations.Retire(ctx, p.Generation); err != nil {
		b.cfg.Logger.Warn("the room of a former generation is still kept", "bucket", p.Bucket, "reason", err)
	}
	if _, err := generations.Serve(ctx, *p.Next); err != nil {
		// Readers are there already. Who takes the view up serves it again, before anything is put into it.
		b.cfg.Logger.Warn("a view is taken up from its new generation, which could not be served at once", "view", w.name, "bucket", p.Next.Bucket, "reason", err)
		w.view = nil
		return nil
	}
	w.succeed(builder)
	return nil
}

// advance sends readers to the next generation. Who removes a former one changes the pointer too, and is no rival.
func (b *rebuilding) advance(ctx context.Context, p Pointer) error {
	for try := 1; ; try++ {
		err := b.cfg.Generations.Point(ctx, b.worker.name, p.advance(b.cfg.Clock()))
		if !errors.Is(err, es.ErrConflict) || try == comparisons {
			return err
		}
		now, lookErr := b.cfg.Generations.Pointer(ctx, b.worker.name)
		if lookErr != nil || now.Bucket != p.Bucket || now.Next == nil || now.Next.Bucket != p.Next.Bucket {
			return err
		}
		p = now
	}
}

// draw brings the next generation and its copies as far as the present one, which takes nothing more from then on.
func (b *rebuilding) draw(ctx context.Context, p Pointer, builder *worker) error {
	bounded, cancel := context.WithTimeout(ctx, b.cfg.MaxHandOver)
	defer cancel()
	present, _ := b.worker.present()
	doing := "closing bucket " + p.Bucket
	err := b.cfg.Generations.Fence(bounded, p.Generation)
	if err == nil {
		doing = "bringing bucket " + p.Next.Bucket + " up to bucket " + p.Bucket
		err = b.bringUp(bounded, present, builder)
	}
	if err == nil {
		doing = fmt.Sprintf("waiting until the copy of bucket %s has its value %d", p.Next.Bucket, builder.confirmed)
		err = b.cfg.Generations.Copied(bounded, *p.Next, builder.confirmed)
	}
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = errors.Mark(errors.Wrapf(err, "%s took longer than %s; bucket %s goes on meanwhile", doing, b.cfg.MaxHandOver, p.Bucket), es.ErrUnavailable)
	}
	return err
}

// unfence lets the present generation go on.
func (b *rebuilding) unfence(ctx context.Context, p Pointer) error {
	_, err := b.cfg.Generations.Serve(ctx, p.Generation)
	return errors.Wrapf(err, "let bucket %s go on", p.Bucket)
}

// bringUp brings the next generation as far as readers of the present one may have seen.
func (b *rebuilding) bringUp(ctx context.Context, present Bucket, builder *worker) error {
	to := uint64(0)
	if b.worker.view != nil {
		to = b.worker.head.Sequence
	}
	if present != nil {
		switch last, err := present.Tail(ctx); {
		case err == nil:
			to = max(to, last.Meta.Position.Sequence)
		case !errors.IsAny(err, es.ErrNotFound, ErrForeign):
			return err
		}
	}
	tail, err := b.cfg.Store.Tail(ctx)
	if err != nil {
		return err
	}
	// The view waits, so that trouble which lasts is no reason to go on here: the present generation still serves.
	for try := 1; ; try++ {
		err := builder.reach(ctx, min(to, tail))
		if err == nil {
			break
		}
		if try == comparisons {
			return err
		}
		if err := builder.recover(ctx, err); err != nil {
			return err
		}
	}
	state, err := builder.bucket.State(ctx)
	if err != nil {
		return err
	}
	if state.Deleted > 0 || state.Last < builder.confirmed {
		return errors.Newf("bucket %s holds %d values, of which %d are missing, after %d were stored", builder.generation.Bucket, state.Messages, state.Deleted, builder.confirmed)
	}
	return nil
}

// succeed goes on with what another worker has built.
func (w *worker) succeed(builder *worker) {
	w.closeAhead()
	w.move(builder.bucket, builder.generation)
	w.view, w.reads = builder.view, builder.reads
	w.queue, w.sent, w.sentBytes = nil, 0, 0
	w.head, w.passed, w.persisted, w.confirmed = builder.head, builder.passed, builder.persisted, builder.confirmed
	w.track.parkedBy(w.view)
	w.track.set(Progress{Event: w.passed.Sequence, Revision: w.confirmed, Bucket: w.generation.Bucket})
}
