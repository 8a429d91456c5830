package project

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// renewal is what a worker knows of the next generation of its bucket. Its goroutine alone looks at it.
type renewal struct {
	pace *pace // between two tries
	// stalled is the generation that was seen as it was, so many values and looks ago, while nobody here was building it.
	stalled Generation
	values  uint64
	looks   int
	// refused is the bucket of one that this program can't go on with, until the view is taken up again.
	refused string
}

// patientLooks is at how many looks in a row a generation that is being built elsewhere must have got nothing new to be taken over.
const patientLooks = 3

// goOn goes on with a generation that was being built when whoever built it ended. Without it the present one serves. While something
// else is done for the view it waits: the next look comes here again.
func (r *Runner) goOn(ctx context.Context, w *worker) {
	next := *w.unfinished
	k, err := r.rebuild(w, RebuildOptions{Anew: true}, next.Reason)
	switch {
	case errors.Is(err, ErrWorking):
	case err != nil:
		r.cfg.Logger.Warn("a generation that was begun is not built further", "view", w.name, "bucket", next.Bucket, "reason", err)
	default:
		w.renewal.refused = next.Bucket // unless something that passes comes in between, as renew finds out
		r.works.group.Go(func() {
			select {
			case <-k.done:
			case <-ctx.Done():
				return
			}
			if _, err := k.Result(); passing(err) {
				w.again.Store(true)
			}
		})
	}
}

// standBy looks now and then at a generation that is being built elsewhere, and takes over when it gets nothing new any more: who built it
// may have ended.
func (w *worker) standBy(ctx context.Context) {
	next := w.unfinished
	if w.again.Swap(false) {
		w.renewal.refused = ""
	}
	if next == nil || w.renewal.refused == next.Bucket || w.builder.Load() != nil {
		w.renewal.looks = 0
		return
	}
	stored, err := w.cfg.Generations.List(ctx, w.name)
	if err != nil {
		return // the next look may tell
	}
	var values uint64
	for _, g := range stored {
		if g.Bucket == next.Bucket {
			values = g.Values
		}
	}
	if w.renewal.looks == 0 || w.renewal.stalled != *next || w.renewal.values != values {
		w.renewal.stalled, w.renewal.values, w.renewal.looks = *next, values, 1
		return
	}
	if w.renewal.looks++; w.renewal.looks > patientLooks {
		w.renewal.looks = 0
		w.cfg.Logger.Warn("a generation that is built elsewhere gets nothing new; it is built here too", "view", w.name, "bucket", next.Bucket)
		w.runner.goOn(ctx, w)
	}
}

// renew builds a new generation for a view that can't go on with the present one. Where something stands in the way that passes, the view
// is taken up again a little later: it may find that another projector has built the generation, and else asks for it again. It stops
// only when trying again would come to the same.
func (r *Runner) renew(ctx context.Context, w *worker, stop *stopError) {
	pause := w.renewal.pace.begin(maxPause)
	w.renewal.pace.end()
	k, err := r.rebuild(w, RebuildOptions{Anew: true}, stop.reason.Error())
	reason := "a new generation of its bucket is being built: "
	switch {
	case errors.Is(err, ErrWorking):
		reason = "a new generation of its bucket is built when what is done for it now is done: "
	case err != nil:
		w.track.halt(&stopError{reason: errors.CombineErrors(stop.reason, err)}, r.cfg.Clock())
		return
	}
	w.track.renew(reason + stop.reason.Error())
	r.works.group.Go(func() {
		err := err
		if k != nil {
			select {
			case <-k.done:
			case <-ctx.Done():
				return
			}
			_, err = k.Result()
		}
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, errPaused): // resuming it takes it up again
		case passing(err):
			w.track.renew("a new generation of its bucket can't be built at the moment (" + err.Error() + "); it tries again: " + stop.reason.Error())
			select {
			case <-time.After(pause):
				w.nudge()
			case <-ctx.Done():
			}
		default:
			w.track.halt(&stopError{reason: err}, r.cfg.Clock())
		}
	})
}

// passing says whether what kept a generation from being built may be gone at the next try.
func passing(err error) bool {
	return errors.IsAny(err, ErrWorking, ErrNoRoom, ErrNoBucket, errMoved, errRetake, errGivenUp, es.ErrFull, es.ErrUnavailable, es.ErrConflict, es.ErrUnclear) &&
		!errors.IsAny(err, ErrStopped, es.ErrBrokenChain)
}
