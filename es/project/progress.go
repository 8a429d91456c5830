package project

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
)

// ErrStopped means that a view has stopped and will not pass the event that is waited for.
var ErrStopped = errors.New("view stopped")

// Progress is how far a view has come.
type Progress struct {
	// Event is the last event that the view has passed and whose values, if any, are all stored.
	Event uint64 `json:"event"`
	// Revision is where the bucket ended then: whoever has that revision sees all that Event and those before it led to.
	Revision uint64 `json:"revision"`
}

// tracker tells others how far a worker has come. It is safe for concurrent use.
type tracker struct {
	mu       sync.Mutex
	progress Progress
	target   uint64 // the stream's tail when the view was last taken up
	trouble  string // why it is not going on at the moment
	stop     *stopError
	since    time.Time
	ended    bool
	waiters  []waiter
}

type waiter struct {
	event uint64
	done  chan struct{}
}

// set gives a new progress, which may be an older one after a bucket lost its tail.
func (t *tracker) set(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.trouble = p, ""
	if len(t.waiters) > 0 {
		t.wake()
	}
}

func (t *tracker) get() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress
}

// aim sets the event up to which the view counts as catching up.
func (t *tracker) aim(target uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.target = target
}

func (t *tracker) hold(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = reason
}

func (t *tracker) halt(stop *stopError, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop, t.since = stop, since
	t.wake()
}

func (t *tracker) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.wake()
}

// wake releases whoever has got what they wait for, or never will. The lock is held.
func (t *tracker) wake() {
	rest := t.waiters[:0]
	for _, w := range t.waiters {
		if t.progress.Event >= w.event || t.stop != nil || t.ended {
			close(w.done)
			continue
		}
		rest = append(rest, w)
	}
	clear(t.waiters[len(rest):])
	t.waiters = rest
}

// wait returns when the view has passed the event. It gives errors marked [ErrStopped], and the context's.
func (t *tracker) wait(ctx context.Context, view string, event uint64) (Progress, error) {
	for {
		t.mu.Lock()
		p := t.progress
		switch {
		case p.Event >= event:
			t.mu.Unlock()
			return p, nil
		case t.stop != nil:
			stop := t.stop
			t.mu.Unlock()
			return p, errors.Mark(errors.Wrapf(stop, "view %s", view), ErrStopped)
		case t.ended:
			t.mu.Unlock()
			return p, errors.Mark(errors.Newf("view %s: the projector has ended at event %d", view, p.Event), ErrStopped)
		}
		w := waiter{event: event, done: make(chan struct{})}
		t.waiters = append(t.waiters, w)
		t.mu.Unlock()
		select {
		case <-w.done:
		case <-ctx.Done():
			t.forget(w)
			return t.get(), errors.Wrapf(ctx.Err(), "view %s: waiting for event %d", view, event)
		}
	}
}

func (t *tracker) forget(gone waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiters {
		if w.done == gone.done {
			t.waiters = append(t.waiters[:i], t.waiters[i+1:]...)
			return
		}
	}
}
