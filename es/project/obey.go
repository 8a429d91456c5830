package project

import (
	"context"

	"github.com/cockroachdb/errors"
)

// order changes what is decided about the view, and tells the view when that is new.
func (w *worker) order(change func(*Control) *Control) {
	for {
		before := w.control.Load()
		after := change(before)
		if after == before {
			break
		}
		if w.control.CompareAndSwap(before, after) {
			w.track.decide(after)
			w.nudge()
			break
		}
	}
	if builder := w.builder.Load(); builder != nil {
		builder.order(change)
	}
}

// nudge lets the view look for a new order, and one that has stopped try again.
func (w *worker) nudge() {
	select {
	case w.ordered <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// readOrders reads the orders from the store, for a view whose reader may not have come to them.
func (w *worker) readOrders(ctx context.Context) error {
	read, err := ReadControl(ctx, w.cfg.Store, w.cfg.Registry, w.cfg.Orders, w.name)
	if err != nil {
		return err
	}
	w.order(func(c *Control) *Control {
		if read.Through <= c.Through {
			return c
		}
		return read
	})
	return nil
}

// obey gives an error marked errPaused when the view is to fold no further, after what is on its way has been answered.
func (w *worker) obey(ctx context.Context) error {
	paused := w.control.Load().Paused
	if paused == nil {
		return nil
	}
	if err := w.settle(ctx); err != nil {
		return err
	}
	return errors.Mark(errors.Newf("the view is paused since event %d (%s)", paused.Order, paused.Reason), errPaused)
}

// awaitOrder waits until a view that does not go on is to try again: the next resume takes it up from its bucket. It says
// false when the context has ended.
func (w *worker) awaitOrder(ctx context.Context) bool {
	w.closeAhead()
	w.leaveMark(ctx)
	for _, p := range w.queue[:w.sent] {
		select {
		case <-p.pending.Done(): // whatever became of it: the bucket tells
		case <-ctx.Done():
			return false
		}
	}
	w.view, w.queue, w.sent, w.sentBytes = nil, nil, 0, 0
	for {
		select {
		case <-w.ordered:
		case e := <-w.errands:
			err := e.do(ctx)
			e.done <- err
			if err != nil {
				continue
			}
			w.track.revive()
		case <-ctx.Done():
			return false
		}
		if w.control.Load().Paused == nil {
			return true
		}
	}
}
