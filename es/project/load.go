package project

import (
	"context"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// load takes the view up from its bucket: the values that stand are its state, and the last value's position says after
// which event folding goes on. It gives a stopError when the bucket can't be gone on with.
func (w *worker) load(ctx context.Context) error {
	if err := w.readOrders(ctx); err != nil {
		return err
	}
	select {
	case <-w.ordered: // it is known by now
	default:
	}
	view := w.spec.New()
	if _, err := w.locate(ctx); err != nil {
		return err
	}
	state, err := w.bucket.State(ctx)
	if err != nil {
		return err
	}
	tail, err := w.bucket.Tail(ctx)
	switch {
	case errors.Is(err, es.ErrNotFound):
		tail = Entry{}
	case errors.Is(err, ErrForeign):
		return w.foreign(err)
	case err != nil:
		return err
	}
	// The stream's tail is read after the bucket's: a bucket never holds what comes from an event that is not stored.
	streamTail, err := w.cfg.Store.Tail(ctx)
	if err != nil {
		return err
	}
	at, err := w.placeOf(ctx, view, state, tail, streamTail)
	if err != nil {
		return err
	}
	head, at, err := w.headAt(ctx, at)
	if err != nil {
		return err
	}
	if err := w.loadValues(ctx, view, at); err != nil {
		return err
	}

	w.closeAhead()
	w.view, w.reads = view, readsOf(view)
	w.queue, w.sent, w.sentBytes = nil, 0, 0
	w.head, w.passed, w.persisted = head, head, at.event
	w.confirmed = at.revision
	w.track.takeUp(Progress{Event: at.event, Revision: at.revision, Bucket: w.generation.Bucket})
	w.track.parkedBy(view)
	w.openAhead(ctx, tail.Revision)
	if w.renewal.refused = ""; w.unfinished != nil {
		w.runner.goOn(ctx, w)
	}
	return w.obey(ctx)
}

// foothold is where folding goes on: after which event, and after which revision of the bucket.
type foothold struct {
	event    uint64
	revision uint64
	last     uint64 // the event of the bucket's last value
	marked   *mark  // the mark that the event was taken from, if so
	valued   uint64 // the event without that mark
}

// placeOf finds where to go on over a bucket with that last value. When not all of the last event's values stand, it is
// before that event, which is then folded again: those of its values that stand are found to be the same, the others are
// written.
func (w *worker) placeOf(ctx context.Context, view View, state BucketState, tail Entry, streamTail uint64) (foothold, error) {
	at := foothold{event: tail.Meta.Position.Sequence, revision: tail.Revision, last: tail.Meta.Position.Sequence}
	if tail.Revision > 0 {
		if at.event > streamTail {
			return at, w.contradicted(ctx, tail, stopf("the bucket %s has come to event %d, but the stream ends at event %d: it is an older copy, or has lost its end; restore the right stream, or build the bucket anew",
				w.name, at.event, streamTail))
		}
		if err := w.checkSource(ctx, tail); err != nil {
			return at, err
		}
	}
	// Only a bucket that was derived from this very stream is followed by a new one without anybody's word.
	switch {
	case state.Deleted > 0:
		return at, wornf("%d of the %d values in the bucket %s are missing: it was damaged or changed by hand; build it anew", state.Deleted, state.Last, w.name)
	case tail.Revision > 0 && tail.Meta.Fold > view.Version():
		return at, newerf("the bucket %s was written by version %d of its view, this program has version %d: run the newer program, or, if it is to be this one, build the bucket anew",
			w.name, tail.Meta.Fold, view.Version())
	case tail.Revision > 0 && tail.Meta.Fold != view.Version():
		return at, wornf("the bucket %s was written by version %d of its view, this program has version %d: build it anew", w.name, tail.Meta.Fold, view.Version())
	case tail.Revision > 0:
		if p := tail.Meta.Position; !p.complete() {
			if uint64(p.Part) > tail.Revision {
				return at, stopf("the bucket %s ends with value %s but has only %d values: build it anew", w.name, p, tail.Revision)
			}
			at.event, at.revision = at.event-1, at.revision-uint64(p.Part)
			return at, nil
		}
	}
	m, ok, err := readMark(ctx, w.cfg.Marks, view, w.generation.Bucket, tail.Revision)
	switch {
	case err != nil:
		return at, err
	case !ok || m.Event <= at.event:
		return at, nil
	case m.Event > streamTail:
		return at, w.markContradicted(ctx, m, stopf("the view %s has read up to event %d, but the stream ends at event %d: it is an older copy, or has lost its end; restore the right stream, or build the bucket anew",
			w.name, m.Event, streamTail))
	}
	at.valued, at.event, at.marked = at.event, m.Event, &m
	return at, nil
}

// headAt gives the head at the foothold. A mark of before a loss that was accepted counts for nothing: without it the view reads more again.
func (w *worker) headAt(ctx context.Context, at foothold) (es.Head, foothold, error) {
	head, err := es.HeadAt(ctx, w.cfg.Store, at.event)
	if err != nil || at.marked == nil || at.marked.Hash == head.Hash {
		return head, at, err
	}
	err = w.markContradicted(ctx, *at.marked, stopf("the mark of view %s was left over another stream: event %d had the hash %.16s…, now it has %.16s…; restore the right stream, or build the bucket anew",
		w.name, at.event, at.marked.Hash, head.Hash))
	if err != nil {
		return head, at, err
	}
	at.event, at.marked = at.valued, nil
	head, err = es.HeadAt(ctx, w.cfg.Store, at.event)
	return head, at, err
}

// markContradicted makes a stop of a mark that has seen other events than the stream has, unless the loss of those was accepted.
func (w *worker) markContradicted(ctx context.Context, m mark, stop error) error {
	_, event, err := w.cfg.accepted(ctx, func(l Loss) bool { return l.Found < m.Event })
	if err == nil && event == 0 {
		err = stop
	}
	return err
}

// checkSource makes sure that the bucket was derived from this very stream.
func (w *worker) checkSource(ctx context.Context, tail Entry) error {
	source := tail.Meta.Source
	m, err := w.cfg.Store.Get(ctx, source.Sequence)
	if errors.Is(err, es.ErrNotFound) {
		return w.contradicted(ctx, tail, stopf("value %d of the bucket %s comes from event %d, which the stream does not have: restore the right stream, or build the bucket anew", tail.Revision, w.name, source.Sequence))
	}
	if err != nil {
		return err
	}
	e, err := es.ReadEvent(m)
	if err != nil {
		return stopAt(source.Sequence, e.Type, err)
	}
	if e.ID != source.ID {
		return w.contradicted(ctx, tail, stopf("value %d of the bucket %s comes from event %d with the id %s, but the stream's event %d has the id %s: it is another stream; restore the right one, or build the bucket anew",
			tail.Revision, w.name, source.Sequence, source.ID, source.Sequence, e.ID))
	}
	return nil
}

// loadValues gives the view the values that stood at the foothold's revision.
func (w *worker) loadValues(ctx context.Context, view View, at foothold) error {
	if at.revision == 0 {
		return nil
	}
	var later []string // keys that have a newer value than the foothold's revision
	for e, err := range w.bucket.Entries(ctx) {
		switch {
		case errors.Is(err, ErrForeign):
			return w.foreign(err)
		case err != nil:
			return err
		case e.Revision > at.revision:
			later = append(later, e.Key)
			continue
		}
		if err := w.loadValue(view, e, at); err != nil {
			return err
		}
	}
	slices.Sort(later)
	for _, key := range slices.Compact(later) {
		var stood Entry
		for e, err := range w.bucket.History(ctx, key) {
			switch {
			case errors.Is(err, ErrForeign):
				return w.foreign(err)
			case err != nil:
				return err
			}
			if e.Revision > at.revision {
				break
			}
			stood = e
		}
		if stood.Revision == 0 {
			continue
		}
		if err := w.loadValue(view, stood, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) loadValue(view View, e Entry, at foothold) error {
	if e.Meta.Position.Sequence > at.last {
		return stopf("the bucket %s goes back: value %d (key %s) is of event %d, but the last value is of event %d; somebody else than the projector wrote into it: find out who, then build it anew",
			w.name, e.Revision, e.Key, e.Meta.Position.Sequence, at.last)
	}
	if err := view.Load(e.Key, e.Value); err != nil {
		return &stopError{reason: errors.Wrapf(err, "value %d of the bucket %s (key %s, event %d) can't be read", e.Revision, w.name, e.Key, e.Meta.Source.Sequence)}
	}
	return nil
}
