package project

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
)

// ErrStopped means that a view has stopped or is paused: it will not pass the event that is waited for by itself.
var ErrStopped = errors.New("view stopped")

// ErrNoView means that the projector has no view of that name.
var ErrNoView = errors.New("no such view")

// Progress is how far a view has come.
type Progress struct {
	// Event is the last event that the view has passed and whose values, if any, are all stored.
	Event uint64 `json:"event"`
	// Revision is where the bucket ended then: whoever has that revision sees all that Event and those before it led to.
	Revision uint64 `json:"revision"`
	// Bucket is the name of the generation of the bucket; empty where a view has but one.
	Bucket string `json:"bucket,omitempty"`
}

// tracker tells others how far a worker has come. It is safe for concurrent use.
type tracker struct {
	fold   int
	policy Policy

	mu         sync.Mutex
	generation int
	progress   Progress
	pace       meter
	trouble    string // why it is not going on at the moment
	// rebuilding is set while the view waits for a new generation of its bucket.
	rebuilding bool
	stop       *stopError
	since      time.Time
	ended      bool
	control    *Control
	parked     map[string]ParkedInstance // by key of the record
	unknown    unknownTypes
	waiters    []waiter
}

type waiter struct {
	event uint64
	done  chan struct{}
}

func newTracker(view View) *tracker {
	return &tracker{
		fold: view.Version(), generation: 1, policy: PolicyOf(view), control: &Control{},
		parked: map[string]ParkedInstance{}, unknown: unknownTypes{},
	}
}

// set gives a new progress, which may be an older one after a bucket lost its tail.
func (t *tracker) set(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.trouble = p, ""
	t.pace.passed(p.Event)
	if len(t.waiters) > 0 {
		t.wake()
	}
}

func (t *tracker) get() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress
}

// takeUp begins anew, as the view does from what stands in its bucket.
func (t *tracker) takeUp(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.trouble, t.rebuilding, t.stop, t.since, t.pace = p, "", false, nil, time.Time{}, meter{}
	t.wake()
}

// moved notes which generation the view's bucket is.
func (t *tracker) moved(g Generation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.generation = g.Number
}

// decide notes what people have decided.
func (t *tracker) decide(c *Control) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.control = c
	t.wake()
}

// park notes what a view says of a parked instance.
func (t *tracker) park(p *parking, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := p.parked[key]
	if !ok {
		delete(t.parked, key)
		return
	}
	t.parked[key] = ParkedInstance{Instance: strings.TrimPrefix(key, parkedPrefix), Parked: r, Said: p.said[key]}
}

// parkedBy notes all that a view has parked, in the place of what was noted before.
func (t *tracker) parkedBy(view View) {
	t.mu.Lock()
	clear(t.parked)
	t.mu.Unlock()
	if p, ok := view.(*parking); ok {
		for key := range p.parked {
			t.park(p, key)
		}
	}
}

// met notes an event whose type the program does not know.
func (t *tracker) met(it *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unknown.met(it)
}

func (t *tracker) hold(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = reason
}

func (t *tracker) halt(stop *stopError, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop, t.since, t.rebuilding = stop, since, false
	t.wake()
}

// renew says that the view waits for a new generation of its bucket.
func (t *tracker) renew(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble, t.rebuilding = reason, true
}

// revive takes a stop back.
func (t *tracker) revive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop, t.since, t.rebuilding = nil, time.Time{}, false
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
		if t.progress.Event >= w.event || t.stop != nil || t.control.Paused != nil || t.ended {
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
		case t.control.Paused != nil:
			paused := t.control.Paused
			t.mu.Unlock()
			return p, errors.Mark(errors.Newf("view %s is paused at event %d: %s", view, p.Event, paused.Reason), ErrStopped)
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

// meter tells how many events a view passes in a second, over the last second or two.
type meter struct {
	since time.Time
	from  uint64
	rate  float64
	calls uint8
}

// passed notes that the view has come to an event.
func (m *meter) passed(event uint64) {
	if m.calls++; m.calls%16 == 0 || m.since.IsZero() { // to look at the clock costs more than all else here
		m.look(time.Now(), event)
	}
}

func (m *meter) look(now time.Time, event uint64) {
	took := now.Sub(m.since)
	switch {
	case m.since.IsZero() || event < m.from:
		m.since, m.from = now, event
	case took >= time.Second:
		m.rate = float64(event-m.from) / took.Seconds()
		m.since, m.from = now, event
	}
}
