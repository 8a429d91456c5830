package project

import (
	"bytes"
	"context"
	"iter"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
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
		values, size := w.together()
		for w.sent > 0 && (w.sent+values > w.cfg.MaxInFlight || w.sentBytes+size > maxInFlightBytes) {
			if err := w.answer(ctx); err != nil {
				return err
			}
		}
		w.send(ctx, values)
		w.sentBytes += size
	}
	return w.collect()
}

const (
	// minTogether is from how many values on they are put together: fewer cost less one by one.
	minTogether = 4
	// maxTogetherBytes bounds the values that are put together, so that many are on their way while they are large.
	maxTogetherBytes = 1 << 20
)

// maxTogether is how many values the bucket takes at once.
func (w *worker) maxTogether() int {
	grouping, ok := w.bucket.(Grouping)
	if !ok || w.alone > 0 {
		return 1
	}
	return min(grouping.MaxGroup(), w.cfg.MaxInFlight)
}

// together gives how many of the next values are put together, and their size.
func (w *worker) together() (values, size int) {
	most := w.maxTogether()
	for _, p := range w.queue[w.sent:] {
		if values == most || values > 0 && size+len(p.data) > maxTogetherBytes {
			break
		}
		values++
		size += len(p.data)
	}
	if values < minTogether {
		return 1, len(w.queue[w.sent].data)
	}
	return values, size
}

// send puts the next values.
func (w *worker) send(ctx context.Context, values int) {
	after := w.confirmed + uint64(w.sent)
	next := w.queue[w.sent : w.sent+values]
	w.sent += values
	failpoint.Pass(failpoint.ProjectorBeforePut)
	if values == 1 {
		next[0].group = 1
		next[0].pending = w.bucket.Put(ctx, after, next[0].key, next[0].data, next[0].meta)
		w.alone = max(w.alone-1, 0)
		return
	}
	placed := make([]Placed, values)
	for i, p := range next {
		placed[i] = Placed{Key: p.key, Data: p.data, Meta: p.meta}
	}
	pending := w.bucket.(Grouping).PutAll(ctx, after, placed)
	for i := range next {
		next[i].pending, next[i].group = pending, values
	}
}

// gathers says whether the values of the last event wait for those of the next one, which is at hand, to be put together with them.
func (w *worker) gathers() bool {
	more := w.head.Sequence < w.until
	if w.place != nil {
		more = len(w.place.events) > 0
	}
	return more && w.ahead == nil && len(w.queue)-w.sent < w.maxTogether()
}

// collect takes in the answers that are there.
func (w *worker) collect() error {
	defer w.tell()
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

// settle sends what has waited to be put together with more, and waits until all values are answered.
func (w *worker) settle(ctx context.Context) error {
	if err := w.push(ctx); err != nil {
		return err
	}
	for w.sent > 0 {
		if err := w.answer(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answer waits for the next answer.
func (w *worker) answer(ctx context.Context) error {
	defer w.tell()
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
		failpoint.Pass(failpoint.ProjectorAfterPut)
		w.sent--
		w.sentBytes -= len(p.data)
		w.confirm(w.confirmed + 1)
		return nil
	case final(err) && p.group > 1:
		w.alone = p.group // which of them it is shows when each is put by itself
		return errors.Wrapf(err, "store %d values from %s on together", p.group, p.meta.Position)
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
	if p.stored != nil {
		p.stored()
	}
	if p.last {
		w.persisted = max(w.persisted, p.meta.Position.Sequence)
		w.passed = p.through
		w.reached = Progress{Event: p.through.Sequence, Revision: revision, Bucket: w.generation.Bucket}
	}
}

// tell tells others how far the view has come, when it has come further.
func (w *worker) tell() {
	if w.reached != (Progress{}) {
		w.track.set(w.reached)
		w.reached = Progress{}
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
// projector made of later events, and nothing of it may be missing: a server that has found damage in its files goes on without what it lost.
func (w *worker) checkEnd(ctx context.Context) error {
	switch moved, err := w.locate(ctx); {
	case err != nil:
		return err
	case moved:
		return errors.Wrapf(errRetake, "another generation of the bucket is read now: %s", w.generation.Bucket)
	}
	state, err := w.bucket.State(ctx)
	if err != nil {
		return err
	}
	if state.Deleted > 0 {
		return errors.Wrapf(errRetake, "bucket %s: %d of its %d values are missing", w.name, state.Deleted, state.Last)
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
	w.tell()
	return nil
}
