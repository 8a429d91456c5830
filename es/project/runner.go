package project

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Runner folds the stream into the buckets of its views: one reader of the stream, and a goroutine for each view. A view
// that can't go on at the moment leaves the reader, catches up with one of its own and comes back, so that no view waits
// for another's trouble.
//
// Any number of runners may run over the same buckets at once: each value is stored once, and who comes second finds its
// value standing.
type Runner struct {
	cfg     Config
	workers []*worker
	works   works

	feed *feed

	mu      sync.Mutex
	started bool
	tail    uint64 // the stream's tail as last heard
	failure error  // why nothing goes on at all
	strange unknownTypes
}

// New checks the configuration and makes a runner. Nothing is read before [Runner.Run].
func New(cfg Config) (*Runner, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, feed: &feed{patience: cfg.MaxHold}, strange: unknownTypes{}, works: newWorks()}
	for _, spec := range cfg.Views {
		r.workers = append(r.workers, newWorker(r, spec))
	}
	return r, nil
}

// Run folds until the context ends; it returns nil then, after what is on its way has been answered and every view has
// left its mark. A view that can't go on stops with a reason that [Runner.Status] shows, and the others go on.
//
// It gives errors marked [es.ErrBrokenChain] when the stream itself is damaged: nothing after the damage is folded. A
// runner runs once.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	again := r.started
	r.started = true
	r.mu.Unlock()
	if again {
		return errors.AssertionFailedf("projector: a runner runs once")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		for _, w := range r.workers {
			w.track.end()
		}
	}()

	r.works.open(ctx)
	defer r.works.close()
	defer cancel()
	// What is said while the views look at their buckets comes to them through the reader: it begins no later than they have begun.
	before, err := r.end(ctx)
	if err != nil || ctx.Err() != nil {
		return r.failed(err, cancel)
	}
	r.takeUp(ctx)
	head := r.start(before)
	var group sync.WaitGroup
	group.Go(func() { r.failed(r.read(ctx, head), cancel) })
	group.Go(func() { r.lookForOrders(ctx) })
	group.Go(func() { r.tidy(ctx) })
	for _, w := range r.workers {
		group.Go(func() { r.failed(w.run(ctx), cancel) })
	}
	group.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// failed keeps the first reason why nothing can go on, and ends everything.
func (r *Runner) failed(err error, cancel context.CancelFunc) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	first := r.failure == nil
	if first {
		r.failure = err
	}
	r.mu.Unlock()
	if first {
		r.cfg.Logger.Error("the projector stops: the stream is damaged", "reason", err)
	}
	for _, w := range r.workers {
		w.track.halt(&stopError{reason: err}, r.cfg.Clock())
	}
	cancel()
	return err
}

// takeUp takes every view up from its bucket, all at the same time. One that does not succeed tries again on its own.
func (r *Runner) takeUp(ctx context.Context) {
	var group sync.WaitGroup
	for _, w := range r.workers {
		group.Go(func() { w.first = w.load(ctx) })
	}
	group.Wait()
}

// end gives the stream's end, and tries again until it can be read or the context ends. It gives errors marked [es.ErrBrokenChain].
func (r *Runner) end(ctx context.Context) (es.Head, error) {
	pace := newPace()
	for {
		tail, err := r.cfg.Store.Tail(ctx)
		var head es.Head
		if err == nil {
			head, err = es.HeadAt(ctx, r.cfg.Store, tail)
		}
		if err == nil || errors.Is(err, es.ErrBrokenChain) {
			return head, err
		}
		r.cfg.Logger.Warn("the projector can't read the stream; it tries again", "reason", err)
		if !pace.wait(ctx, maxPause) {
			return head, nil
		}
	}
}

// start says where the one reader begins: after the lowest position of the views that were taken up, which are attached
// before it reads, or at what was the stream's end before they were, when there is none.
func (r *Runner) start(before es.Head) es.Head {
	head := before
	for _, w := range r.workers {
		if w.first == nil && w.head.Sequence < head.Sequence {
			head = w.head
		}
	}
	r.feed.begin(head)
	for _, w := range r.workers {
		if w.first == nil {
			w.place, _ = r.feed.take(w.reads)
		}
	}
	return head
}

// read is the one reader of the stream. It gives errors marked [es.ErrBrokenChain].
func (r *Runner) read(ctx context.Context, head es.Head) error {
	pace := newPace()
	for {
		var failure error
		for m, err := range es.VerifyChain(&head, r.cfg.Store.Follow(ctx, head.Sequence)) {
			if err != nil {
				failure = err
				break
			}
			it := newItem(r.cfg.Registry, m, head)
			r.heard(it)
			r.feed.hand(ctx, it)
		}
		switch {
		case errors.Is(failure, es.ErrBrokenChain):
			return failure
		case ctx.Err() != nil:
			return nil
		}
		r.cfg.Logger.Warn("the projector can't follow the stream; it tries again", "after", head.Sequence, "reason", failure)
		if !pace.wait(ctx, maxPause) {
			return nil
		}
	}
}

// heard takes in what an event says to the projector itself.
func (r *Runner) heard(it *item) {
	r.mu.Lock()
	r.tail = max(r.tail, it.head.Sequence)
	r.strange.met(it)
	r.mu.Unlock()
	if it.err != nil {
		return
	}
	if r.cfg.Losses != nil && it.event.Ref == r.cfg.Losses.Instance {
		if _, ok := r.cfg.Losses.Read(it.event); ok {
			for _, w := range r.workers {
				w.nudge() // one that has stopped at what was lost goes on now
			}
		}
	}
	if r.cfg.Orders == nil {
		return
	}
	for _, w := range r.workers {
		if w.orders != it.event.Ref {
			continue
		}
		if o, ok := r.cfg.Orders.Read(it.event); ok {
			w.order(func(c *Control) *Control { return c.after(o, &it.event) })
		}
	}
}

// lookForOrders looks for orders now and then while the reader is far behind the stream's end, where it would come to them
// late. An error is no harm: the reader comes to them, or the next look does.
func (r *Runner) lookForOrders(ctx context.Context) {
	if r.cfg.Orders == nil {
		return
	}
	tick := time.NewTicker(r.cfg.CheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tail, err := r.cfg.Store.Tail(ctx)
		if err == nil && tail <= r.feed.at()+nearBy {
			continue
		}
		for _, w := range r.workers {
			if err == nil {
				err = w.readOrders(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.Debug("the projector could not look for orders; it looks again", "reason", err)
		}
	}
}

// Retry lets a view that has stopped be taken up from its bucket again, after what stopped it was dealt with: a bucket that
// was mended, or another one in its place. For a view that goes on it does nothing that is seen. It gives errors for a view
// the runner does not have.
func (r *Runner) Retry(view string) error {
	for _, w := range r.workers {
		if w.name == view {
			w.nudge()
			return nil
		}
	}
	return r.unknown(view)
}

// Position tells how far a view has come. It gives errors for a view the runner does not have.
func (r *Runner) Position(view string) (Progress, error) {
	for _, w := range r.workers {
		if w.name == view {
			return w.track.get(), nil
		}
	}
	return Progress{}, r.unknown(view)
}

// Wait returns when the named views, all when none is named, have passed an event: their positions then say which bucket
// revision shows what the event has led to, also when it led to nothing. It gives errors marked [ErrStopped] when a view
// has stopped before the event or the runner has ended, and the context's; the positions of the views that have passed
// the event are given beside the error.
func (r *Runner) Wait(ctx context.Context, event uint64, views ...string) (map[string]Progress, error) {
	waited := r.workers
	if len(views) > 0 {
		waited = nil
		for _, view := range views {
			at := slices.IndexFunc(r.workers, func(w *worker) bool { return w.name == view })
			if at < 0 {
				return nil, r.unknown(view)
			}
			waited = append(waited, r.workers[at])
		}
	}
	passed := make(map[string]Progress, len(waited))
	var failure error
	for _, w := range waited {
		p, err := w.track.wait(ctx, w.name, event)
		if err != nil {
			failure = errors.CombineErrors(failure, err)
			continue
		}
		passed[w.name] = p
	}
	return passed, failure
}

func (r *Runner) unknown(view string) error {
	names := make([]string, len(r.workers))
	for i, w := range r.workers {
		names[i] = w.name
	}
	return errors.Mark(errors.Newf("the projector has no view %q; it has %v", view, names), ErrNoView)
}
