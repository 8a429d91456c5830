package store

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

// tracker tells others how far the store has come. It is safe for many goroutines.
type tracker struct {
	mu    *sync.Mutex
	state *audit.StoreState
	moved chan struct{} // closed and replaced with every change
	over  bool
}

func newTracker() tracker {
	return tracker{mu: &sync.Mutex{}, state: &audit.StoreState{Building: true}, moved: make(chan struct{})}
}

func (t *tracker) change(how func(*audit.StoreState)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	how(t.state)
	close(t.moved)
	t.moved = make(chan struct{})
}

// taken gives how far it has come in the refused commands.
func (t *tracker) taken(refused uint64) {
	t.change(func(s *audit.StoreState) { s.Refused = max(s.Refused, refused) })
}

func (t *tracker) hold(trouble string) { t.change(func(s *audit.StoreState) { s.Trouble = trouble }) }

func (t *tracker) halt(err error) {
	t.change(func(s *audit.StoreState) {
		s.Stopped, s.Trouble, s.Since = err.Error(), "", time.Now()
		var stop *stopError
		if errors.As(err, &stop) {
			s.At = stop.at
		}
	})
}

// resume says that what has stopped it is over, and that a new file is being built.
func (t *tracker) resume() {
	t.change(func(s *audit.StoreState) { *s = audit.StoreState{Building: true, Answers: s.Answers} })
}

func (t *tracker) end() {
	t.change(func(*audit.StoreState) { t.over = true })
}

func (t *tracker) look() (audit.StoreState, <-chan struct{}, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.state, t.moved, t.over
}

// Status tells how far the store has come.
func (s *Store) Status() audit.StoreState {
	state, _, _ := s.track.look()
	return state
}

// Await returns when the file has an event or a refused command after a place, when it does not go on, or when the context ends.
func (s *Store) Await(ctx context.Context, after audit.LogPlace) {
	for {
		state, moved, over := s.track.look()
		if over || state.Building || state.Stopped != "" || state.Event > after.Event || state.Refused > after.Refused {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// Wait returns when the file has taken in an event and can be asked. It gives errors marked [audit.ErrStoreBehind] when it will not,
// and the context's.
func (s *Store) Wait(ctx context.Context, event uint64) error {
	for {
		state, moved, over := s.track.look()
		switch {
		case !state.Building && state.Event >= event:
			return nil
		case state.Paused != nil:
			return errors.Mark(errors.Newf("the audit store is paused at event %d: %s", state.Event, state.Paused.Reason), audit.ErrStoreBehind)
		case state.Stopped != "":
			return errors.Mark(errors.Newf("the audit store has stopped at event %d: %s", state.Event, state.Stopped), audit.ErrStoreBehind)
		case over:
			return errors.Mark(errors.Newf("the audit store has ended at event %d", state.Event), audit.ErrStoreBehind)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "the audit store is at event %d, waiting for %d", state.Event, event)
		}
	}
}
