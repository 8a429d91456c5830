package desk

import (
	"context"
	"sync"
)

// Desk is where questions are answered: so many at once, each in a goroutine of its own. Whoever takes one in takes a place first, and
// either begins the work or leaves the place again.
type Desk struct {
	places chan struct{}

	mu      sync.Mutex
	closed  bool
	working sync.WaitGroup
}

// New gives a desk with so many places.
func New(places int) *Desk { return &Desk{places: make(chan struct{}, places)} }

// Take takes a place if one is free.
func (d *Desk) Take() bool {
	select {
	case d.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// Await takes a place, and waits for one; it gives false when the context ends before.
func (d *Desk) Await(ctx context.Context) bool {
	select {
	case d.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Leave gives a place back on which no work was begun.
func (d *Desk) Leave() { <-d.places }

// Go begins work on a place that was taken, which is left when the work ends. On a desk that is closed nothing is begun, and the place is
// left at once.
func (d *Desk) Go(work func()) bool {
	// The group grows only while the desk is open, so that Wait waits for all.
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.Leave()
		return false
	}
	d.working.Go(func() {
		defer d.Leave()
		work()
	})
	return true
}

// Close lets nothing begin any more.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// Wait returns when all that has begun has ended. The desk MUST be closed.
func (d *Desk) Wait() { d.working.Wait() }
