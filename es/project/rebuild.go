package project

import (
	"context"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Rebuild begins to build a view's bucket anew, or gives the work if it is on its way already. The view goes on meanwhile.
//
// It folds the whole stream afresh and compares. What differs is written again at the bucket's end where that is enough;
// nothing is ever removed. A bucket that lacks values, whose past is not what it was, or whose values have another form now,
// gets a new generation: it is filled beside the present one, and when it has come as far, readers are sent to it. Whatever
// ends the process before that leaves the present one serving, and the next start goes on.
//
// It gives errors marked [ErrWorking], [ErrStopped] when the runner has ended, and [ErrNoView].
func (r *Runner) Rebuild(view string, o RebuildOptions) (*Work, error) {
	for _, w := range r.workers {
		if w.name == view {
			return r.rebuild(w, o, "it was asked for")
		}
	}
	return nil, r.unknown(view)
}

func (r *Runner) rebuild(w *worker, o RebuildOptions, reason string) (*Work, error) {
	return r.works.begin(w.name, o, func(ctx context.Context, k *Work) (Rebuilt, error) {
		b := &rebuilding{cfg: &r.cfg, worker: w, options: o, work: k, pace: newPace()}
		err := b.run(ctx, reason)
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.Error("a view could not be built anew", "view", w.name, "reason", err)
		}
		return b.result, errors.Wrapf(err, "rebuild view %s", w.name)
	})
}

// goOn goes on with a generation that was being built when whoever built it ended. Without it the present one serves.
func (r *Runner) goOn(w *worker) {
	if _, err := r.rebuild(w, RebuildOptions{Anew: true}, w.unfinished.Reason); err != nil {
		r.cfg.Logger.Warn("a generation that was begun is not built further", "view", w.name, "bucket", w.unfinished.Bucket, "reason", err)
	}
}

// renew builds a new generation for a view that can't go on with the present one, and stops it when that fails.
func (r *Runner) renew(ctx context.Context, w *worker, stop *stopError) {
	k, err := r.rebuild(w, RebuildOptions{Anew: true}, stop.reason.Error())
	if err != nil {
		w.track.halt(&stopError{reason: errors.CombineErrors(stop.reason, err)}, r.cfg.Clock())
		return
	}
	w.track.renew("a new generation of its bucket is being built: " + stop.reason.Error())
	r.works.group.Go(func() {
		select {
		case <-k.done:
		case <-ctx.Done():
			return
		}
		if _, err := k.Result(); err != nil && ctx.Err() == nil {
			w.track.halt(&stopError{reason: err}, r.cfg.Clock())
		}
	})
}

// rebuilding is a rebuild at work.
type rebuilding struct {
	cfg     *Config
	worker  *worker
	options RebuildOptions
	work    *Work
	pace    *pace
	result  Rebuilt
}

func (b *rebuilding) run(ctx context.Context, reason string) error {
	b.result = Rebuilt{View: b.worker.name, DryRun: b.options.DryRun, Anew: reason}
	if b.options.DryRun || !b.options.Anew {
		if err := b.mend(ctx); err != nil {
			return err
		}
		if b.result.Anew == "" && b.options.Anew {
			b.result.Anew = reason
		}
		if b.result.Anew == "" || b.options.InPlace || b.options.DryRun {
			return nil
		}
	}
	return b.build(ctx)
}

// build fills the next generation and hands the view over to it.
func (b *rebuilding) build(ctx context.Context) error {
	if b.cfg.Generations == nil {
		return errors.Newf("%s; a new generation of the bucket is needed, but this projector keeps none", b.result.Anew)
	}
	works := &b.worker.runner.works
	if err := works.await(ctx); err != nil {
		return err
	}
	defer works.leave()
	if paused := b.worker.control.Load().Paused; paused != nil {
		// Asked before the next generation is made known: one that was would be built, unasked, as soon as the view goes on.
		return errors.Mark(errors.Newf("the view is paused since event %d (%s), and a new generation needs it to go on; resume it first", paused.Order, paused.Reason), ErrStopped)
	}
	p, builder, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer builder.closeAhead()
	b.cfg.Logger.Info("a new generation of a bucket is being built", "view", b.worker.name, "bucket", p.Next.Bucket, "reason", p.Next.Reason)
	if err := builder.fill(ctx, b.work); err != nil {
		return err
	}
	// The copies may need long for what was built. What follows after that is short.
	if err := b.cfg.Generations.Copied(ctx, *p.Next, builder.confirmed); err != nil {
		return err
	}
	b.work.at(StageSwitching, builder.head.Sequence, func() uint64 { return builder.track.get().Event })
	if err := b.worker.command(ctx, func(ctx context.Context) error { return b.handOver(ctx, p, builder) }); err != nil {
		return err
	}
	b.result.Bucket, b.result.Generation = p.Next.Bucket, p.Next
	b.result.Events, b.result.Values = builder.head.Sequence, builder.confirmed
	b.cfg.Logger.Info("a view has a new generation of its bucket", "view", b.worker.name, "bucket", p.Next.Bucket, "before", p.Bucket)
	return nil
}

// begin finds the next generation, or makes it known that there is one, and takes it up.
func (b *rebuilding) begin(ctx context.Context) (Pointer, *worker, error) {
	generations, view := b.cfg.Generations, b.worker.name
	for try := 1; ; try++ {
		p, err := generations.Pointer(ctx, view)
		if err != nil {
			return p, nil, err
		}
		if p.Next != nil {
			builder, err := b.takeUp(ctx, p)
			var stop *stopError
			if err == nil || !errors.As(err, &stop) {
				return p, builder, err
			}
			// What was begun can't be gone on with: another program began it, or it is damaged.
			b.cfg.Logger.Warn("a generation that was begun is given up for another one", "view", view, "bucket", p.Next.Bucket, "reason", stop.reason)
		}
		next, err := generations.Follow(ctx, view, p)
		if err != nil {
			return p, nil, err
		}
		next.Reason = b.result.Anew
		err = generations.Point(ctx, view, p.begin(next))
		if err != nil && (try == comparisons || !errors.IsAny(err, es.ErrConflict, es.ErrUnclear)) {
			return p, nil, err
		}
	}
}

// takeUp takes up what there is of the next generation. Its position is in its bucket, as with every bucket.
func (b *rebuilding) takeUp(ctx context.Context, p Pointer) (*worker, error) {
	bucket, err := b.cfg.Generations.Open(ctx, *p.Next)
	if err != nil {
		return nil, err
	}
	cfg := *b.cfg
	cfg.Generations, cfg.Marks = nil, nil // the marks are those of the generation that is read
	builder := newWorker(b.worker.runner, ViewSpec{New: b.worker.spec.New, Bucket: bucket})
	builder.cfg, builder.generation = &cfg, *p.Next
	return builder, builder.load(ctx)
}

// fill folds the stream into a generation that nobody reads yet, until little is left.
func (w *worker) fill(ctx context.Context, k *Work) error {
	for {
		tail, err := w.cfg.Store.Tail(ctx)
		if err == nil {
			k.at(StageBuilding, tail, func() uint64 { return w.track.get().Event })
			near := tail <= w.head.Sequence+nearBy
			if err = w.reach(ctx, tail); err == nil && near {
				return nil
			}
		}
		if err := w.recover(ctx, err); err != nil {
			return err
		}
	}
}

// reach folds up to an event and waits until all values stand.
func (w *worker) reach(ctx context.Context, event uint64) error {
	if err := w.catchUp(ctx, event); err != nil {
		return err
	}
	if err := w.push(ctx); err != nil {
		return err
	}
	return w.settle(ctx)
}

// recover goes on after trouble that passes: another projector that fills the same generation, or a bucket that can't be
// reached. It gives what does not pass.
func (w *worker) recover(ctx context.Context, trouble error) error {
	for err := trouble; err != nil; {
		var stop *stopError
		switch {
		case errors.As(err, &stop), errors.Is(err, errPaused):
			return errors.Mark(err, ErrStopped)
		case errors.IsAny(err, es.ErrBrokenChain, es.ErrFull):
			return err
		case !w.pace.wait(ctx, maxPause):
			return ctx.Err()
		}
		w.cfg.Logger.Info("building a generation can't go on; it tries again", "bucket", w.generation.Bucket, "reason", err)
		if errors.Is(err, errRetake) || w.view == nil {
			w.view = nil
			err = w.load(ctx)
		} else {
			err = w.compare(ctx)
		}
	}
	return nil
}

// handOver runs in the view's goroutine, which puts nothing meanwhile. It keeps others from putting into the present
// generation, brings the next one as far as that has come, and its copies too, and only then sends readers there: who has
// read the present generation finds nothing older in the next.
func (b *rebuilding) handOver(ctx context.Context, p Pointer, builder *worker) error {
	generations, w := b.cfg.Generations, b.worker
	present, _ := w.present()
	if err := generations.Fence(ctx, p.Generation); err != nil {
		return errors.CombineErrors(err, b.unfence(ctx, p))
	}
	err := b.bringUp(ctx, present, builder)
	if err == nil {
		err = generations.Copied(ctx, *p.Next, builder.confirmed)
	}
	if err == nil {
		err = generations.Point(ctx, w.name, p.advance(b.cfg.Clock()))
	}
	if err != nil {
		// The answer may be lost, or another projector was faster: the pointer tells.
		now, lookErr := generations.Pointer(ctx, w.name)
		if lookErr != nil || now.Bucket != p.Next.Bucket {
			w.view = nil
			return errors.CombineErrors(err, b.unfence(ctx, p))
		}
	}
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
