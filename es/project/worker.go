package project

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// worker folds for one view. All fields but track belong to the one goroutine that runs it.
//
// Its state is always this: the view has folded every event up to head; of the values that came from that, those up to
// the revision `confirmed` stand in the bucket, and the queue holds the others in order, of which the first `sent` are on
// their way. The rest waits for values of events that are at hand, to be put together with them.
type worker struct {
	runner  *Runner
	cfg     *Config
	spec    ViewSpec
	bucket  Bucket
	name    string
	track   *tracker
	pace    *pace
	errands chan errand

	mu         sync.Mutex // guards who else looks at bucket and generation
	generation Generation
	unfinished *Generation // one that was being built when the pointer was last read
	renewal    renewal
	// builder folds into the next generation beside the view, while it does; it obeys the view's orders.
	builder atomic.Pointer[worker]
	// wanted says, of a builder, whether the generation is still to be built: another projector may have given it up.
	wanted func(context.Context) bool
	again  atomic.Bool // what kept the next generation from being built has passed

	first error  // what came of taking the view up at the start
	place *place // where the view stands at the reader after that

	orders  es.Ref                  // the instance that holds the orders for the view
	control atomic.Pointer[Control] // what they come to: set by who reads the stream, never nil
	ordered chan struct{}           // says that there is a new order, or another reason to try again

	view      View // nil: to be taken up from the bucket
	reads     map[string]bool
	head      es.Head
	until     uint64   // the last event that the view's own reader gives
	passed    es.Head  // the last event whose values are all confirmed
	reached   Progress // what others are not told yet
	persisted uint64   // the last event that the bucket or the mark shows as passed
	confirmed uint64
	queue     []planned
	sent      int
	sentBytes int
	alone     int // so many values are put one by one, since one of them can't be stored
	ahead     *ahead
}

// planned is a value that is to stand in the bucket.
type planned struct {
	key     string
	data    []byte
	meta    Meta
	group   int     // how many values were put together, this one among them
	last    bool    // the event's last value
	through es.Head // the last event that has passed when the value stands
	stored  func()  // of an event's last value that is traced: told when it stands
	pending es.Pending
}

// nearBy is how many events a view may be behind the reader when it attaches itself: it reads these on its own while the
// reader goes on.
const nearBy = 100

// beyondPause is how long a view that has passed what does not concern it looks for no more of that. Each look wakes a goroutine, of which
// there are as many as views: without the pause that takes as long, for each event, as folding it.
const beyondPause = time.Millisecond

// closeTime bounds what a view does after the context has ended: it waits for answers and leaves its mark.
const closeTime = 500 * time.Millisecond

func newWorker(r *Runner, spec ViewSpec) *worker {
	view := spec.New()
	w := &worker{
		runner: r, cfg: &r.cfg, spec: spec, bucket: spec.Bucket, name: view.Name(), pace: newPace(), ordered: make(chan struct{}, 1),
		track: newTracker(view), errands: make(chan errand), renewal: renewal{pace: newPace()},
	}
	w.control.Store(&Control{})
	if r.cfg.Orders != nil {
		w.orders = r.cfg.Orders.Instance(w.name)
	}
	return w
}

// run folds until the context ends; a view that has stopped waits for an errand. It gives errors marked [es.ErrBrokenChain].
func (w *worker) run(ctx context.Context) error {
	defer w.close(ctx)
	err := w.first
	if err == nil {
		err = w.follow(ctx)
	}
	for {
		var stop *stopError
		switch {
		case errors.Is(err, es.ErrBrokenChain):
			return err
		case errors.As(err, &stop):
			if stop.renew && w.cfg.Generations != nil {
				w.cfg.Logger.Warn("a view needs a new generation of its bucket", "view", w.name, "reason", stop.reason)
				w.runner.renew(ctx, w, stop)
			} else {
				w.cfg.Logger.Error("a view has stopped", "view", w.name, "at", stop.at, "reason", stop.reason)
				w.track.halt(stop, w.cfg.Clock())
			}
			if !w.awaitOrder(ctx) {
				return nil
			}
			err = w.resume(ctx)
			continue
		case errors.Is(err, errPaused):
			w.cfg.Logger.Info("a view is paused", "view", w.name, "reason", err)
			if !w.awaitOrder(ctx) {
				return nil
			}
			w.cfg.Logger.Info("a view goes on", "view", w.name)
			err = w.resume(ctx)
			continue
		case errors.Is(err, errLeftBehind):
			w.cfg.Logger.Info("a view was slower than the reader; it reads on its own", "view", w.name)
			err = w.resume(ctx)
			continue
		case ctx.Err() != nil:
			return nil
		}
		most := maxPause
		switch {
		case errors.Is(err, es.ErrConflict):
			// Somebody else stored a value: another projector, most likely. What stands tells.
			most = maxRivalPause
			w.cfg.Logger.Debug("another projector was faster", "view", w.name, "reason", err)
		case errors.Is(err, errRetake):
			w.view = nil
			fallthrough
		default:
			w.cfg.Logger.Warn("a view can't go on; it tries again", "view", w.name, "reason", err)
			w.track.hold(err.Error())
		}
		if !w.rest(ctx, most) {
			return nil
		}
		err = w.resume(ctx)
	}
}

// resume finds out what stands in the bucket, catches up and follows the reader again.
func (w *worker) resume(ctx context.Context) error {
	moved, err := w.locate(ctx)
	switch {
	case err != nil:
		return err
	case moved || w.view == nil:
		err = w.load(ctx)
	default:
		err = w.compare(ctx)
	}
	if err != nil {
		return err
	}
	if err := w.join(ctx); err != nil {
		return err
	}
	return w.follow(ctx)
}

// join catches up and takes a place at the reader.
func (w *worker) join(ctx context.Context) error {
	for {
		to := w.runner.feed.at()
		if to <= w.head.Sequence+nearBy {
			break
		}
		if err := w.catchUp(ctx, to); err != nil {
			return err
		}
	}
	place, to := w.runner.feed.take(w.reads)
	w.place = place
	if err := w.catchUp(ctx, to); err != nil {
		w.leave()
		return err
	}
	return nil
}

func (w *worker) leave() {
	if w.place != nil {
		w.runner.feed.leave(w.place)
		w.place = nil
	}
}

// follow takes what the reader hands out until there is trouble or the context ends.
func (w *worker) follow(ctx context.Context) error {
	defer w.leave()
	if len(w.queue) == 0 {
		w.track.hold("")
	}
	marks := time.NewTicker(w.cfg.MarkInterval)
	defer marks.Stop()
	checks := time.NewTicker(w.cfg.CheckInterval)
	defer checks.Stop()
	rested := time.NewTimer(beyondPause)
	defer rested.Stop()
	rests := true
	for {
		var answered, beyond <-chan struct{}
		if w.sent > 0 {
			answered = w.queue[0].pending.Done()
		}
		if !rests {
			beyond = w.place.beyond
		}
		var err error
		select {
		case it := <-w.place.events:
			err = w.take(ctx, it)
		case <-beyond:
			err = w.takeBeyond(ctx)
			rests = true
			rested.Reset(beyondPause)
		case <-rested.C:
			rests = false
		case <-w.place.over:
			err = errLeftBehind
		case <-w.ordered:
			err = w.obey(ctx)
		case <-answered:
			err = w.collect()
		case e := <-w.errands:
			err = w.serve(ctx, e)
		case <-marks.C:
			w.leaveMark(ctx)
		case <-checks.C:
			if len(w.queue) == 0 && len(w.place.events) == 0 {
				if err = w.checkEnd(ctx); err == nil && w.cfg.Generations != nil {
					w.standBy(ctx)
				}
			}
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// catchUp reads up to an event with a reader of its own.
func (w *worker) catchUp(ctx context.Context, through uint64) error {
	if w.head.Sequence >= through {
		return nil
	}
	head := w.head
	w.until = through
	for v, err := range es.Ahead(ctx, w.cfg.Registry, w.cfg.Store, head, aheadWorkers) {
		if err != nil {
			return err
		}
		head = v.Head
		if err := w.fold(ctx, itemOf(v)); err != nil {
			return err
		}
		if w.control.Load().Paused != nil {
			return w.obey(ctx)
		}
		if head.Sequence >= through {
			return nil
		}
	}
	return errors.Mark(errors.Newf("the stream was read up to event %d, but event %d is known to stand", head.Sequence, through), es.ErrUnavailable)
}

// take takes one event from the reader. Between it and the one before there is none that concerns the view.
func (w *worker) take(ctx context.Context, it *item) error {
	if it.head.Sequence <= w.head.Sequence {
		return nil
	}
	return w.fold(ctx, it)
}

// takeBeyond passes the events that do not concern the view, after those that do and came before them.
func (w *worker) takeBeyond(ctx context.Context) error {
	passed := w.place.passed.Load()
	for range len(w.place.events) {
		if err := w.take(ctx, <-w.place.events); err != nil {
			return err
		}
	}
	return w.take(ctx, passed)
}

// fold folds the next event and sends its values on their way.
func (w *worker) fold(ctx context.Context, it *item) error {
	if it.err != nil && it.concerns(w.reads) {
		w.track.met(it)
	}
	values, err := fold(w.view, w.reads, w.control.Load(), it)
	if err != nil {
		if err := w.settle(ctx); err != nil {
			return err
		}
		return stopAt(it.head.Sequence, it.event.Type, err)
	}
	if p, ok := w.view.(*parking); ok && len(values) > 0 && IsParkedKey(values[0].Key) {
		w.track.park(p, values[0].Key)
	}
	for i, v := range values {
		w.queue = append(w.queue, planned{
			key: v.Key, data: v.Data, last: i == len(values)-1, through: it.head,
			meta: metaOf(&it.event, w.view.Version(), i+1, len(values)),
		})
	}
	if w.cfg.Trace != nil && len(values) > 0 && it.event.Command.Trace != "" {
		w.queue[len(w.queue)-1].stored = w.cfg.Trace(w.name, &it.event, len(values))
	}
	w.head = it.head
	if len(values) == 0 && len(w.queue) > 0 {
		w.queue[len(w.queue)-1].through = it.head
	}
	switch {
	case len(values) > 0 && w.gathers():
		// The next event is at hand, and its values go out with these.
	case len(w.queue) > 0 && w.sent < len(w.queue):
		err = w.push(ctx)
	case len(w.queue) > 0:
		err = w.collect()
	default:
		w.pass(ctx, it.head)
	}
	return err
}

// pass notes that all values of all events up to the head stand.
func (w *worker) pass(ctx context.Context, head es.Head) {
	w.passed = head
	w.track.set(Progress{Event: head.Sequence, Revision: w.confirmed, Bucket: w.generation.Bucket})
	if head.Sequence-w.persisted >= w.cfg.MarkEvents {
		w.leaveMark(ctx)
	}
}

// leaveMark leaves a mark when the view has passed events that neither the bucket nor the last mark shows. A mark is safe
// to lose, so a failure is only logged. A view that is to be taken up from its bucket leaves none: what it passed may stand there no more.
func (w *worker) leaveMark(ctx context.Context) {
	if w.view == nil || w.cfg.Marks == nil || w.passed.Sequence <= w.persisted {
		return
	}
	m := mark{Event: w.passed.Sequence, Hash: w.passed.Hash, Revision: w.confirmed, Fold: w.view.Version(), Bucket: w.generation.Bucket}
	err := m.write(ctx, w.cfg.Marks, w.name)
	if err != nil && ctx.Err() != nil {
		return // close leaves it, in a time of its own
	}
	// After a failure too: where marks can't be left, the next try is due as late as the next mark would be.
	w.persisted = m.Event
	if err != nil {
		w.cfg.Logger.Warn("a view could not leave its mark", "view", w.name, "event", m.Event, "reason", err)
	}
}

// close waits for what is on its way and leaves a mark, both within a short time.
func (w *worker) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	w.closeAhead()
	if w.view == nil {
		return
	}
	for w.sent > 0 {
		if err := w.answer(ctx); err != nil {
			w.cfg.Logger.Debug("a value was not answered at the end; the next start finds out", "view", w.name, "reason", err)
			break
		}
	}
	w.leaveMark(ctx)
}
