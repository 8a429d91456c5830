package chain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// Why what was written can't be read yet.
var (
	// ErrBehind marks that a view, or the copy of its bucket that is read here, has not come to an event.
	ErrBehind = errors.New("the view is behind")
	// ErrStopped marks that a view has stopped before an event, and goes on only after somebody has dealt with why.
	ErrStopped = project.ErrStopped
	// ErrNoView marks that nobody fills a view of that name.
	ErrNoView = project.ErrNoView
)

// Position says how far a view is.
type Position struct {
	View string
	// Bucket is the name of the generation of the view's bucket that it fills.
	Bucket string
	// Event is the last event that the view has passed, and Revision what the bucket ended with then: a copy of the bucket that
	// has it shows all that the event and those before it have led to, also if that is nothing.
	Event, Revision uint64
	// Stopped says why the view does not go on.
	Stopped string
}

// Paces of looking whether a copy has caught up: a mirror follows within a millisecond, and asking costs a request.
const (
	waitFirst   = time.Millisecond
	waitLongest = 100 * time.Millisecond
)

// WaitFor waits until this reader shows all that an event has led to, and every event before it, in the views that are named by
// their first bucket, or in all of them: then a read gives what was written, or something newer. It is right for events that
// lead to no value, through copies, and while readers are sent to another generation.
//
// Only the context bounds it. It then gives an error marked [ErrBehind], which names what is behind and how far, with the
// context's own; one marked [ErrNoView] at once when one of the names is that of no view; one marked [ErrStopped] at once when all others are there and a view has stopped before the event; and what
// asking for the positions gives. While a copy can't be reached it tries again.
func (r *Reader) WaitFor(ctx context.Context, event uint64, views ...string) error {
	var behind error
	late := func(err error) error {
		if behind != nil {
			err = errors.Wrapf(err, "%v", behind)
		}
		return errors.Mark(errors.Wrapf(err, "event %d can't be read here yet", event), ErrBehind)
	}
	for pause := waitFirst; ; pause = min(2*pause, waitLongest) {
		positions, err := r.positions(ctx, event)
		switch {
		case err != nil && ctx.Err() != nil:
			return late(ctx.Err())
		case err != nil:
			return errors.Wrapf(err, "wait for event %d", event)
		}
		if positions, err = ofViews(positions, views); err != nil {
			return errors.Wrapf(err, "wait for event %d", event)
		}
		var stopped error
		behind, stopped, err = r.lacks(ctx, event, positions)
		switch {
		case err != nil && ctx.Err() != nil:
			return late(err)
		case errors.Is(err, es.ErrUnavailable):
			behind = err // there is time left, and a copy that moves to another server comes back
		case err != nil:
			return err
		}
		if behind == nil {
			return stopped
		}
		select {
		case <-ctx.Done():
			return late(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// ofViews gives the positions of the views that are named, all when none is. It gives errors marked [ErrNoView], since to wait for what nobody
// fills would be to wait for nothing.
func ofViews(positions []Position, views []string) ([]Position, error) {
	if len(views) == 0 {
		return positions, nil
	}
	var named []Position
	for _, view := range views {
		at := slices.IndexFunc(positions, func(p Position) bool { return p.View == view })
		if at < 0 {
			all := make([]string, len(positions))
			for i, p := range positions {
				all[i] = p.View
			}
			return nil, errors.Mark(errors.Newf("there is no view %q; there are %s", view, strings.Join(all, ", ")), ErrNoView)
		}
		named = append(named, positions[at])
	}
	return named, nil
}

// lacks says what keeps an event from being read here.
func (r *Reader) lacks(ctx context.Context, event uint64, positions []Position) (behind, stopped, err error) {
	for _, p := range positions {
		switch {
		case p.Event < event && p.Stopped != "":
			stopped = errors.CombineErrors(stopped, errors.Mark(errors.Newf("%s has stopped: %s", p.View, p.Stopped), ErrStopped))
			continue
		case p.Event < event:
			return errors.Newf("%s is at event %d", p.View, p.Event), nil, nil
		}
		// Read anew: with an older pointer the next read would go elsewhere.
		bucket, err := r.Bucket(ctx, p.View)
		if err != nil {
			return nil, nil, err
		}
		if bucket != p.Bucket {
			return errors.Newf("%s is read from %s here, and filled in %s", p.View, bucket, p.Bucket), nil, nil
		}
		if err := r.WaitRevision(ctx, bucket, p.Revision); err != nil {
			return nil, nil, err
		}
	}
	return nil, stopped, nil
}

// WaitRevision waits until the reader's own copy of a bucket, which is named by its own name, holds at least the revision. Only
// the context bounds it; its error then is in the chain, and the message tells how far the copy is.
func (r *Reader) WaitRevision(ctx context.Context, bucket string, revision uint64) error {
	b, err := r.named(ctx, bucket)
	if err != nil {
		return err
	}
	var seen uint64
	for pause := waitFirst; ; pause = min(2*pause, waitLongest) {
		state, err := b.State(ctx)
		switch {
		case err == nil && state.Last >= revision:
			return nil
		case err == nil:
			seen = state.Last
		case ctx.Err() == nil:
			return errors.Wrapf(err, "wait for revision %d of %s", revision, bucket)
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "wait for revision %d of %s: this copy is at %d", revision, bucket, seen)
		case <-time.After(pause):
		}
	}
}
