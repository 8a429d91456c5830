package store

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es/project"
	"catenary/projections"
)

// errOrdered means that somebody has decided something about the store.
var errOrdered = errors.New("there is a new order")

// errPaused means that somebody has paused the store before there was a file to go on with.
var errPaused = errors.New("paused")

// orderLook is how often a store that does not go on looks for a new order.
const orderLook = time.Second

// readControl gives what people have decided about the store.
func (s *Store) readControl(ctx context.Context) (*project.Control, error) {
	return project.ReadControl(ctx, s.cfg.Events, s.cfg.Registry, projections.Orders(), audit.StoreView)
}

// awaitOrder waits until somebody decides something more than is known, or the context ends.
func (s *Store) awaitOrder(ctx context.Context, known *project.Control) error {
	tick := time.NewTicker(orderLook)
	defer tick.Stop()
	for {
		// What can't be read now may be read the next time: the reason why the store does not go on is shown already.
		if c, err := s.readControl(ctx); err == nil && c.Through > known.Through {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// standBy writes what is not an event until somebody decides something more, or the context ends.
func (s *Store) standBy(ctx context.Context, w *writing) error {
	standing, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var ordered error
	group.Go(func() {
		ordered = s.awaitOrder(standing, w.control)
		cancel()
	})
	if err := s.feed(standing, w, idle, 0, false); err != nil {
		return err
	}
	group.Wait()
	if ordered != nil {
		return ordered
	}
	return errOrdered
}

// follow takes in what is recorded from now on, as people decide: while it is paused, and where it has stopped, it stands by. It gives an
// error marked errOrdered when the file has to be built anew for what somebody has decided.
func (s *Store) follow(ctx context.Context, w *writing) error {
	for {
		var err error
		if w.control.Paused != nil {
			err = s.standBy(ctx, w)
		} else if err = s.feed(ctx, w, s.cfg.Events.Follow, s.cfg.Linger, false); s.stopped(err) {
			err = s.standBy(ctx, w)
		}
		if !errors.Is(err, errOrdered) {
			return err
		}
		control, err := s.readControl(ctx)
		if err != nil {
			return err
		}
		if !w.honours(control) {
			return errors.Mark(errors.New("an event that was taken in is to be left out"), errOrdered)
		}
		w.control = control
		s.track.change(func(state *audit.StoreState) {
			state.Stopped, state.At, state.Since = "", 0, time.Time{}
			w.tellPolicy(state)
		})
	}
}
