package project

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// errand is work that a view's goroutine does in the place of its own, while it puts nothing into the bucket by itself.
type errand struct {
	do   func(ctx context.Context) error
	done chan error
}

// errUnsettled means that an errand came while values were on their way. It is to be given again.
var errUnsettled = errors.Mark(errors.New("values of the view are on their way"), es.ErrUnavailable)

// command has the view's goroutine do something, whether it runs, waits after trouble or has stopped, and waits for it. After
// an errand that gave no error a view that had stopped goes on.
func (w *worker) command(ctx context.Context, do func(ctx context.Context) error) error {
	e := errand{do: do, done: make(chan error, 1)}
	select {
	case w.errands <- e:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve does an errand in between and goes on. The reader is left meanwhile, so that no other view waits.
func (w *worker) serve(ctx context.Context, e errand) error {
	w.leave()
	err := w.settle(ctx)
	if err == nil {
		err = e.do(ctx)
	}
	e.done <- err
	switch {
	case err != nil:
		return err
	case w.view == nil:
		return errors.Wrap(errRetake, "the view's bucket is another one now")
	}
	return w.join(ctx)
}

// rest pauses after trouble; an errand ends the pause. It says false when the context has ended.
func (w *worker) rest(ctx context.Context, most time.Duration) bool {
	timer := time.NewTimer(w.pace.begin(most))
	defer timer.Stop()
	defer w.pace.end()
	select {
	case <-timer.C:
	case e := <-w.errands:
		e.done <- e.do(ctx)
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
