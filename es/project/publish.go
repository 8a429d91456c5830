package project

import (
	"bytes"
	"context"
	"iter"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// push sends the queue on its way, as far as the limits allow. Where the bucket was found to hold more than was
// confirmed, the next values are not sent but compared with what stands.
func (w *worker) push(ctx context.Context) error {
	for w.sent < len(w.queue) {
		if w.ahead != nil {
			if err := w.adopt(ctx); err != nil {
				return err
			}
			continue
		}
		p := &w.queue[w.sent]
		for w.sent > 0 && (w.sent >= w.cfg.MaxInFlight || w.sentBytes+len(p.data) > maxInFlightBytes) {
			if err := w.answer(ctx); err != nil {
				return err
			}
			p = &w.queue[w.sent]
		}
		p.pending = w.bucket.Put(ctx, w.confirmed+uint64(w.sent), p.key, p.data, p.meta)
		w.sent++
		w.sentBytes += len(p.data)
	}
	return w.collect()
}

// collect takes in the answers that are there.
func (w *worker) collect() error {
	for w.sent > 0 {
		select {
		case <-w.queue[0].pending.Done():
			if err := w.answered(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// settle waits until all values are answered.
func (w *worker) settle(ctx context.Context) error {
	for w.sent > 0 {
		if err := w.answer(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answer waits for the next answer.
func (w *worker) answer(ctx context.Context) error {
	select {
	case <-w.queue[0].pending.Done():
		return w.answered()
	case <-ctx.Done():
		return errors.Mark(errors.Wrapf(ctx.Err(), "waiting for the value at %s", w.queue[0].meta.Position), es.ErrUnclear)
	}
}

// answered takes in the first value's answer. When it was not stored, neither are those after it, unless their fate is
// as unclear: compare finds out.
func (w *worker) answered() error {
	p := w.queue[0]
	err := p.pending.Err()
	switch {
	case err == nil:
		w.sent--
		w.sentBytes -= len(p.data)
		w.confirm(w.confirmed + 1)
		return nil
	case final(err):
		return stopAt(p.meta.Position.Sequence, p.meta.Type, errors.Wrapf(err, "the value for key %s can't be stored", p.key))
	}
	return errors.Wrapf(err, "store the value at %s for key %s", p.meta.Position, p.key)
}

// confirm notes that the queue's first value stands at a revision.
func (w *worker) confirm(revision uint64) {
	p := w.queue[0]
	w.queue[0] = planned{}
	w.queue = w.queue[1:]
	w.confirmed = revision
	if p.last {
		w.persisted = max(w.persisted, p.meta.Position.Sequence)
		w.passed = p.through
		w.track.set(Progress{Event: p.through.Sequence, Revision: revision, Bucket: w.generation.Bucket})
	}
}

// compare finds out what became of the values on their way, by what stands: those that do are confirmed, whoever stored
// them, and the others are sent again with the same guard, so that at most one of all tries is stored.
func (w *worker) compare(ctx context.Context) error {
	w.closeAhead()
	for _, p := range w.queue[:w.sent] {
		select {
		case <-p.pending.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.sent, w.sentBytes = 0, 0
	tail, err := w.bucket.Tail(ctx)
	switch {
	case errors.Is(err, es.ErrNotFound):
		tail = Entry{}
	case errors.Is(err, ErrForeign):
		return w.foreign(err)
	case err != nil:
		return err
	}
	if tail.Revision < w.confirmed {
		return errors.Wrapf(errRetake, "bucket %s: it ends at value %d, but value %d was stored", w.name, tail.Revision, w.confirmed)
	}
	w.openAhead(ctx, tail.Revision)
	return w.push(ctx)
}

// checkEnd looks at the bucket while nothing happens: it has to end where the view left it, or with what another
// projector made of later events.
func (w *worker) checkEnd(ctx context.Context) error {
	switch moved, err := w.locate(ctx); {
	case err != nil:
		return err
	case moved:
		return errors.Wrapf(errRetake, "another generation of the bucket is read now: %s", w.generation.Bucket)
	}
	tail, err := w.bucket.Tail(ctx)
	switch {
	case errors.Is(err, es.ErrNotFound):
		tail = Entry{}
	case err != nil && !errors.Is(err, ErrForeign):
		return err
	}
	if tail.Revision == w.confirmed || err == nil && tail.Revision > w.confirmed && tail.Meta.Position.Sequence > w.head.Sequence {
		return nil
	}
	return w.examine(ctx, tail)
}

// examine says what is wrong with a bucket that does not end where it should.
func (w *worker) examine(ctx context.Context, tail Entry) error {
	if tail.Revision < w.confirmed {
		return errors.Wrapf(errRetake, "bucket %s: it ends at value %d, but value %d was stored", w.name, tail.Revision, w.confirmed)
	}
	for e, err := range w.bucket.All(ctx, w.confirmed) {
		switch {
		case errors.Is(err, ErrForeign):
			return w.foreign(err)
		case err != nil:
			return err
		case e.Meta.mends():
			return errors.Wrapf(errRetake, "bucket %s: value %d mends key %s", w.name, e.Revision, e.Key)
		case e.Meta.Position.Sequence <= w.head.Sequence:
			return w.notOurs(e)
		}
	}
	return nil
}

func (w *worker) foreign(err error) error {
	return &stopError{reason: errors.Wrapf(err, "bucket %s: somebody else than the projector wrote into it; find out who, then build it anew", w.name)}
}

func (w *worker) notOurs(e Entry) error {
	return stopf("value %d of the bucket %s (key %s) says that it comes from event %d, but this program makes another one or none of it: somebody else wrote it, or a program whose view has the same version and folds otherwise; find out who, then build the bucket anew",
		e.Revision, w.name, e.Key, e.Meta.Source.Sequence)
}

// ahead reads what stands in the bucket after the confirmed revision.
type ahead struct {
	next func() (Entry, error, bool)
	stop func()
}

func (w *worker) openAhead(ctx context.Context, last uint64) {
	if last > w.confirmed {
		next, stop := iter.Pull2(w.bucket.All(ctx, w.confirmed))
		w.ahead = &ahead{next: next, stop: stop}
	}
}

func (w *worker) closeAhead() {
	if w.ahead != nil {
		w.ahead.stop()
		w.ahead = nil
	}
}

// adopt confirms the queue's first value by the one that stands in its place, if there is one.
func (w *worker) adopt(ctx context.Context) error {
	e, err, ok := w.ahead.next()
	switch {
	case !ok:
		w.closeAhead()
		return ctx.Err() // a read that the context ended is not at its end
	case errors.Is(err, ErrForeign):
		return w.foreign(err)
	case err != nil:
		return err
	}
	p := &w.queue[0]
	switch {
	case e.Revision != w.confirmed+1:
		return stopf("value %d of the bucket %s is missing: build it anew", w.confirmed+1, w.name)
	case e.Meta.mends():
		return errors.Wrapf(errRetake, "bucket %s: value %d mends key %s", w.name, e.Revision, e.Key)
	case e.Key != p.key || !bytes.Equal(e.Value, p.data) || !e.Meta.Equal(p.meta):
		return w.notOurs(e)
	}
	w.confirm(e.Revision)
	return nil
}
