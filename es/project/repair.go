package project

import (
	"context"
	"sync/atomic"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// comparisons bounds how often a bucket is compared again because another projector changed it meanwhile.
const comparisons = 5

// errMoved means that the bucket has gone on behind the place up to which it was compared.
var errMoved = errors.New("the bucket was written to meanwhile")

// mend folds the whole stream afresh beside the bucket, and then, in the view's own goroutine and with nothing on its way, the
// rest of it, and writes again what differs. Up to there the view goes on. So a mending value is the newest of its key, and a
// reader never sees an older one after a newer.
//
// It holds the view's state a second time, and of each key what the fold gives; a key's past is compared as it passes.
func (b *rebuilding) mend(ctx context.Context) error {
	for try := 1; ; try++ {
		err := b.compareAndMend(ctx)
		if err == nil || try == comparisons || !errors.IsAny(err, errMoved, es.ErrConflict, es.ErrUnclear, errRetake) {
			return err
		}
		b.cfg.Logger.Info("a bucket was written to while it was compared; it is compared again", "view", b.worker.name, "reason", err)
	}
}

func (b *rebuilding) compareAndMend(ctx context.Context) error {
	bucket, generation := b.worker.present()
	if bucket == nil {
		return errors.Mark(errors.Newf("the bucket of view %s was not reached yet", b.worker.name), es.ErrUnavailable)
	}
	b.result = Rebuilt{View: b.worker.name, Bucket: nameOf(bucket, b.worker.name), DryRun: b.options.DryRun}
	view := b.worker.spec.New()
	reason, err := worn(ctx, bucket, view)
	if err != nil || reason != "" {
		b.result.Anew = reason
		return err
	}
	tail, err := b.cfg.Store.Tail(ctx)
	if err != nil {
		return err
	}
	control, err := ReadControl(ctx, b.cfg.Store, b.cfg.Registry, b.cfg.Orders, b.worker.name)
	if err != nil {
		return err
	}
	patience := DefaultPatience
	if state := b.worker.track.status(b.worker.name, tail).State; state == StateStopped || state == StatePaused || state == StateRebuilding {
		patience = pollPause // what is not there does not come
	}
	f := &freshFold{cfg: b.cfg, check: newCheck(view, control, bucket, tail, patience)}
	defer f.check.close()
	b.work.at(StageComparing, tail, f.passed.Load)
	for to := tail; f.head.Sequence < to; to = b.worker.track.get().Event {
		if err := f.through(ctx, to); err != nil {
			return err
		}
	}
	for {
		err := b.worker.command(ctx, func(ctx context.Context) error { return b.finish(ctx, f, bucket, generation) })
		if !errors.Is(err, errUnsettled) {
			return err
		}
		// The view has trouble of its own; it tries again, or stops.
		if !b.pace.wait(ctx, maxPause) {
			return ctx.Err()
		}
	}
}

// worn says why a bucket has to be built anew whatever its values are.
func worn(ctx context.Context, bucket Bucket, view View) (string, error) {
	state, err := bucket.State(ctx)
	if err != nil {
		return "", err
	}
	if state.Deleted > 0 {
		return errors.Newf("%d of its %d values are missing", state.Deleted, state.Last).Error(), nil
	}
	tail, err := bucket.Tail(ctx)
	switch {
	case errors.IsAny(err, es.ErrNotFound, ErrForeign):
		return "", nil
	case err != nil:
		return "", err
	case tail.Meta.Fold != view.Version():
		return errors.Newf("it was written by version %d of its view, this program has version %d", tail.Meta.Fold, view.Version()).Error(), nil
	}
	return "", nil
}

// finish runs in the view's goroutine: it folds the rest, compares, and writes again what differs.
func (b *rebuilding) finish(ctx context.Context, f *freshFold, bucket Bucket, generation Generation) error {
	w, c := b.worker, f.check
	switch {
	case w.generation != generation:
		return errMoved
	case len(w.queue) > 0:
		return errUnsettled
	}
	if w.view != nil {
		if err := w.reach(ctx, f.head.Sequence); err != nil {
			return err
		}
		if err := f.through(ctx, w.head.Sequence); err != nil {
			return err
		}
	}
	last, err := b.compare(ctx, f, bucket)
	mends := b.result.Mends
	switch {
	case err != nil, b.result.Anew != "", b.options.DryRun:
		return err
	case w.view == nil:
		if err := c.write(ctx, bucket, last, mends, b.cfg.Clock()); err != nil || b.cfg.Marks == nil {
			return err
		}
		// What the bucket holds was compared with the whole stream, so nothing rests on the view's mark, whose contradiction may be what
		// stopped it.
		return mark{}.write(ctx, b.cfg.Marks, w.name)
	case len(mends) == 0:
		return nil
	}
	if err := c.write(ctx, bucket, last, mends, b.cfg.Clock()); err != nil {
		w.view = nil // some of them may stand: the view is to be taken up again
		return err
	}
	// The view's own state came from the bucket, and may have what was wrong there in it.
	w.view, w.reads = c.view, readsOf(c.view)
	w.confirmed = last + uint64(len(mends))
	w.track.parkedBy(w.view)
	w.track.set(Progress{Event: w.passed.Sequence, Revision: w.confirmed, Bucket: w.generation.Bucket})
	return nil
}

// compare ends the comparison, puts what it has found into the result, and gives the bucket's last sequence.
func (b *rebuilding) compare(ctx context.Context, f *freshFold, bucket Bucket) (last uint64, err error) {
	c := f.check
	c.tail = f.head.Sequence
	if err := c.finish(ctx, b.cfg.Store, true); err != nil {
		return 0, err
	}
	if c.report.Unfolded != "" {
		return 0, errors.Mark(errors.New(c.report.Unfolded), ErrStopped)
	}
	state, err := bucket.State(ctx)
	if err != nil {
		return 0, err
	}
	if state.Last != c.read {
		return 0, errMoved
	}
	b.result.Mends, b.result.Anew = c.plan()
	b.result.Events, b.result.Values = f.head.Sequence, c.report.Values
	if c.report.Behind > 0 {
		b.result.Events = c.report.Behind - 1 // a view that does not go on has come no further
	}
	b.result.Differences = len(c.report.Differences) + c.report.More
	return state.Last, nil
}

// freshFold folds the stream beside a check.
type freshFold struct {
	cfg    *Config
	check  *check
	head   es.Head
	passed atomic.Uint64
}

// through folds up to an event.
func (f *freshFold) through(ctx context.Context, event uint64) error {
	if f.head.Sequence >= event {
		return nil
	}
	for v, err := range es.Ahead(ctx, f.cfg.Registry, f.cfg.Store, f.head, aheadWorkers) {
		if err != nil {
			return err
		}
		f.head = v.Head
		if err := f.check.event(ctx, itemOf(v)); err != nil {
			return err
		}
		f.passed.Store(f.head.Sequence)
		if f.head.Sequence >= event {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Mark(errors.Newf("the stream was read up to event %d, but event %d is known to stand", f.head.Sequence, event), es.ErrUnavailable)
}
