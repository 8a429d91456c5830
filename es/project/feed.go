package project

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"catenary/es"
)

// feedEvents is how many events a view may be behind the reader before the reader waits for it.
const feedEvents = 256

// feed hands the events of the one reader to the views that have a place at it. It is safe for concurrent use.
type feed struct {
	// patience is how long the reader waits for a view that takes nothing at all.
	patience time.Duration

	mu     sync.Mutex
	places []*place // replaced, never changed
	handed uint64   // the last event handed to who has a place
}

// place is a view's place at the reader. The view is handed each event that concerns it, and how far the others go.
type place struct {
	reads  map[string]bool
	events chan *item
	// passed is the last event that did not concern the view; beyond says that it is a new one. What concerned the view before
	// that is in events by then. So a view that reads little costs the reader next to nothing.
	passed atomic.Pointer[item]
	beyond chan struct{}
	// over is closed when the place is no more: the view has left it, or took nothing for too long.
	over chan struct{}
}

// take gives a view a place at the reader, which hands it every event after the one returned.
func (f *feed) take(reads map[string]bool) (*place, uint64) {
	p := &place{reads: reads, events: make(chan *item, feedEvents), beyond: make(chan struct{}, 1), over: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places = append(slices.Clone(f.places), p)
	return p, f.handed
}

// leave ends a place. One that has ended stays so.
func (f *feed) leave(p *place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.Index(f.places, p); at >= 0 {
		close(p.over)
		f.places = slices.Delete(slices.Clone(f.places), at, at+1)
	}
}

// at is the last event that was handed out.
func (f *feed) at() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handed
}

// begin says after which event the reader begins.
func (f *feed) begin(head es.Head) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed = head.Sequence
}

// hand gives an event to every view that has a place. It waits for views that are busy, but a view that takes nothing for so
// long that others would be held up loses its place; it then reads on its own.
func (f *feed) hand(ctx context.Context, it *item) {
	f.mu.Lock()
	f.handed = it.head.Sequence
	places := f.places
	f.mu.Unlock()
	for _, p := range places {
		if !it.concerns(p.reads) {
			p.passed.Store(it)
			select {
			case p.beyond <- struct{}{}:
			default: // it has not looked since the last time
			}
			continue
		}
		select {
		case p.events <- it:
		default:
			f.wait(ctx, p, it)
		}
	}
}

func (f *feed) wait(ctx context.Context, p *place, it *item) {
	patience := time.NewTimer(f.patience)
	defer patience.Stop()
	select {
	case p.events <- it:
	case <-p.over:
	case <-patience.C:
		f.leave(p)
	case <-ctx.Done():
	}
}
