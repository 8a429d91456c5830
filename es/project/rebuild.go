package project

import (
	"context"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
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

// build fills the next generation and hands the view over to it, when there is room for it: one generation is built at a time, also where
// several projectors run.
func (b *rebuilding) build(ctx context.Context) error {
	if b.cfg.Generations == nil {
		return errors.Newf("%s; a new generation of the bucket is needed, but this projector keeps none", b.result.Anew)
	}
	_, asked := b.worker.present()
	if asked.Bucket == "" { // the view was not taken up yet
		p, err := b.cfg.Generations.Pointer(ctx, b.worker.name)
		if err != nil {
			return err
		}
		asked = p.Generation
	}
	for {
		err := b.buildInTurn(ctx, asked)
		if !errors.IsAny(err, ErrNoRoom, errGivenUp) {
			return err
		}
		b.work.at(StageWaiting, 0, nil)
		b.cfg.Logger.Info("a new generation waits for its turn", "view", b.worker.name, "reason", err)
		if !b.pace.wait(ctx, maxPause) {
			return ctx.Err()
		}
	}
}

// buildInTurn builds the generation that follows on the one for which it was asked, if nobody else has done so meanwhile. It gives errors
// marked [ErrNoRoom] while that of another view is being built elsewhere.
func (b *rebuilding) buildInTurn(ctx context.Context, asked Generation) error {
	works := &b.worker.runner.works
	if err := works.await(ctx); err != nil {
		return err
	}
	defer works.leave()
	if paused := b.worker.control.Load().Paused; paused != nil {
		// Asked before the next generation is made known: one that was would be built, unasked, as soon as the view goes on.
		return errors.Mark(errors.Mark(errors.Newf("the view is paused since event %d (%s), and a new generation needs it to go on; resume it first", paused.Order, paused.Reason), ErrStopped), errPaused)
	}
	p, builder, err := b.begin(ctx, asked)
	if err != nil {
		return err
	}
	if builder == nil {
		b.result.Bucket, b.result.Generation = p.Bucket, &p.Generation
		b.worker.nudge() // if it waits for this, it goes on with what there is
		return nil
	}
	defer builder.closeAhead()
	// From here on the builder hears of every order; those of before it has read itself.
	b.worker.builder.Store(builder)
	defer b.worker.builder.Store(nil)
	if err := builder.readOrders(ctx); err != nil {
		return err
	}
	b.cfg.Logger.Info("a new generation of a bucket is being built", "view", b.worker.name, "bucket", p.Next.Bucket, "reason", p.Next.Reason)
	if err := builder.fill(ctx, b.work); err != nil {
		return err
	}
	// The copies may need long for what was built. What follows after that is short.
	b.work.at(StageCopying, builder.head.Sequence, func() uint64 { return builder.track.get().Event })
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

// begin finds the next generation, or makes it known that there is one, and takes it up. It gives no worker when readers have been sent
// to another generation than the one for which it was asked.
func (b *rebuilding) begin(ctx context.Context, asked Generation) (Pointer, *worker, error) {
	generations, view := b.cfg.Generations, b.worker.name
	var givenUp *Generation
	for try := 1; ; try++ {
		p, err := generations.Pointer(ctx, view)
		if err != nil || p.Bucket != asked.Bucket {
			return p, nil, err
		}
		if p.Next != nil {
			builder, err := b.takeUp(ctx, p)
			var stop *stopError
			if err == nil || !errors.As(err, &stop) || stop.newer {
				return p, builder, err
			}
			// What was begun can't be gone on with: an older program began it, or it is damaged.
			b.cfg.Logger.Warn("a generation that was begun is given up for another one", "view", view, "bucket", p.Next.Bucket, "reason", stop.reason)
			givenUp = p.Next
		}
		next, err := b.follow(ctx, p)
		if err != nil {
			return p, nil, err
		}
		next.Reason = b.result.Anew
		err = generations.Point(ctx, view, p.begin(next))
		if err == nil && givenUp != nil {
			b.discard(ctx, *givenUp)
			givenUp = nil
		}
		if err != nil && (try == comparisons || !errors.IsAny(err, es.ErrConflict, es.ErrUnclear)) {
			return p, nil, err
		}
	}
}

// takeUp takes up what there is of the next generation. Its position is in its bucket, as with every bucket.
func (b *rebuilding) takeUp(ctx context.Context, p Pointer) (*worker, error) {
	if err := b.cfg.Generations.Reserve(ctx, b.worker.name, *p.Next); err != nil {
		return nil, err
	}
	bucket, err := b.cfg.Generations.Open(ctx, *p.Next)
	if err != nil {
		return nil, err
	}
	cfg := *b.cfg
	cfg.Generations, cfg.Marks = nil, nil // the marks are those of the generation that is read
	builder := newWorker(b.worker.runner, ViewSpec{New: b.worker.spec.New, Bucket: bucket})
	builder.cfg, builder.generation = &cfg, *p.Next
	builder.wanted = func(ctx context.Context) bool {
		now, err := b.cfg.Generations.Pointer(ctx, b.worker.name)
		return err != nil || now.Bucket == p.Next.Bucket || now.Next != nil && now.Next.Bucket == p.Next.Bucket
	}
	err = builder.load(ctx)
	if errors.Is(err, errPaused) {
		err = errors.Mark(err, ErrStopped)
	}
	return builder, err
}

// fill folds the stream into a generation that nobody reads yet, until little is left.
func (w *worker) fill(ctx context.Context, k *Work) error {
	for {
		tail, err := w.cfg.Store.Tail(ctx)
		if err == nil {
			k.at(StageBuilding, tail, func() uint64 { return w.track.get().Event })
			near := tail <= w.head.Sequence+nearBy
			failpoint.Pass(failpoint.RebuildFill)
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
		case errors.As(err, &stop):
			return errors.Mark(err, ErrStopped)
		case errors.Is(err, errPaused):
			return errors.Mark(errors.Wrapf(err, "bucket %s is gone on with when the view is resumed", w.generation.Bucket), ErrStopped)
		case errors.IsAny(err, es.ErrBrokenChain, es.ErrFull):
			return err
		case !w.pace.wait(ctx, maxPause):
			return ctx.Err()
		}
		if !w.wanted(ctx) {
			return errors.Wrapf(errGivenUp, "bucket %s", w.generation.Bucket)
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
