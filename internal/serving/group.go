package serving

import (
	"context"
	"sync"
)

// Group answers questions: so many at once, each in a goroutine of its own. Whoever takes one in takes a place first, and either begins the
// work or leaves the place again.
type Group struct {
	places chan struct{}

	mu      sync.Mutex
	closed  bool
	working sync.WaitGroup
}

// NewGroup gives a group with so many places.
func NewGroup(places int) *Group { return &Group{places: make(chan struct{}, places)} }

// TryGo begins work if a place is free and the group is not closed, and says whether it did.
func (g *Group) TryGo(work func()) bool { return g.Take() && g.Go(work) }

// Take takes a place if one is free.
func (g *Group) Take() bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// Await takes a place, and waits for one; it gives false when the context ends before.
func (g *Group) Await(ctx context.Context) bool {
	select {
	case g.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Leave gives a place back on which no work was begun.
func (g *Group) Leave() { <-g.places }

// Go begins work on a place that was taken, which is left when the work ends. In a group that is closed nothing is begun, and the place is
// left at once.
func (g *Group) Go(work func()) bool {
	// The group grows only while it is open, so that Wait waits for all.
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		g.Leave()
		return false
	}
	g.working.Go(func() {
		defer g.Leave()
		work()
	})
	return true
}

// Close lets nothing begin any more.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Wait returns when all that has begun has ended. The group MUST be closed.
func (g *Group) Wait() { g.working.Wait() }
