package dispatch

import (
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// wait files a command that leaves no events of its own. Its answer rests on all that was decided before, and on a
// look at the stream's tail after deciding: only that shows that no other writer has gone on meanwhile.
func (w *Writer) wait(j *job) {
	w.waits++
	j.wait = w.waits
	w.waiting = append(w.waiting, j)
}

// readTail starts one read of the tail for all that wait for one. A command decided after a read began needs the next.
func (w *Writer) readTail(ctx context.Context) {
	if w.reading || !slices.ContainsFunc(w.waiting, func(j *job) bool { return j.repeat == 0 && !j.tailRead }) {
		return
	}
	w.reading = true
	covers := w.waits
	w.readers.Go(func() {
		bounded, cancel := context.WithTimeout(ctx, w.cfg.Patience/2)
		defer cancel()
		tail, err := w.cfg.Store.Tail(bounded)
		if err != nil {
			pause(ctx, firstRetry) // a store that says no at once is not asked without end
		}
		w.tails <- tailRead{covers: covers, tail: tail, err: err}
	})
}

// tailRead marks those that waited for a read, or takes in what another writer has appended.
func (w *Writer) tailRead(ctx context.Context, r tailRead) error {
	w.reading = false
	if r.err != nil {
		w.cfg.Logger.Warn("can't read the stream's tail, trying again", "error", r.err)
		return nil
	}
	if r.tail < w.confirmed.Sequence {
		return w.lost(ctx)
	}
	if r.tail > w.head.Sequence {
		w.cfg.Logger.Warn("another writer has appended, deciding again", "known", w.head.Sequence, "tail", r.tail)
		return w.catchUpTo(ctx, r.tail)
	}
	for _, j := range w.waiting {
		if j.wait > r.covers || j.repeat != 0 || j.tailRead {
			continue
		}
		j.tailRead = true
		if r.tail > j.rests {
			// Something stands after what the command was decided on. It is our own, or an append of ours will fail
			// and the command will be decided again.
			j.rests++
		}
	}
	return nil
}

// lostLooks is how many looks must agree that events are lost, in a quarter of the patience: a server that has just become the
// stream's leader may be behind for a moment.
const lostLooks = 5

// lost gives an error marked [ErrEventsLost] when the stream ends before what is known to stand: it was put back to an older
// state, or its server has lost its last events, while the writer went on. Nothing can be appended there for ever.
func (w *Writer) lost(ctx context.Context) error {
	var tail uint64
	for range lostLooks {
		var err error
		if tail, err = w.cfg.Store.Tail(ctx); err != nil || tail >= w.confirmed.Sequence {
			return nil // while the store is away nothing is known
		}
		pause(ctx, w.cfg.Patience/4/lostLooks)
	}
	return errors.Wrapf(ErrEventsLost, "the stream ends at event %d, and this writer has seen event %d: %s", tail, w.confirmed.Sequence, bringBack)
}

// catchUpTo takes in what another writer has appended, up to a tail that was read. What is in the air comes first: its own
// outcome tells whether the other has gone past it.
func (w *Writer) catchUpTo(ctx context.Context, tail uint64) error {
	for f := w.air.oldest(); f != nil; f = w.air.oldest() {
		_ = w.meanwhile(func() error { return es.Wait(ctx, f.pending) }) // its outcome is land's
		if ctx.Err() != nil {
			return nil
		}
		if err := w.land(ctx); err != nil {
			return err
		}
	}
	if w.confirmed.Sequence >= tail {
		return nil
	}
	return w.giveWay(ctx)
}

// giveWay drops the upper layer, of which nothing can be stored any more, and takes in what another writer has appended.
// All that waits without events was decided on a world that was not the newest: it is decided again, also when it rests on
// nothing of ours that failed.
func (w *Writer) giveWay(ctx context.Context) error {
	for _, j := range w.waiting {
		if j.repeat == 0 {
			j.rests = w.head.Sequence + 1
		}
	}
	w.undo()
	return w.takeOver(ctx)
}

// answerWaiting answers what rests on nothing but what stands.
func (w *Writer) answerWaiting(ctx context.Context) {
	w.waiting = slices.DeleteFunc(w.waiting, func(j *job) bool {
		switch {
		case j.rests > w.confirmed.Sequence:
			return false
		case j.repeat != 0:
			if j.answered {
				return true
			}
			if w.repeating == maxRepeating {
				return false
			}
			j.answered = true
			w.repeating++
			w.readers.Go(func() {
				w.answerRepeat(ctx, j.command, j.repeat, j.answer)
				w.repeated <- struct{}{}
			})
			return true
		case j.tailRead:
			j.reply(j.result)
			return true
		}
		return false
	})
}

// answerRepeat gives the first answer to a command that was done before, made anew from its events.
func (w *Writer) answerRepeat(ctx context.Context, c es.Command, p place, answer func(es.Answer)) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Patience)
	defer cancel()
	first := es.Answer{Status: es.StatusAccepted, Command: c.ID, Aggregate: c.Ref.Aggregate, Key: c.Ref.Key}
	for i := range p.count() {
		m, err := w.cfg.Store.Get(ctx, p.sequence()+uint64(i))
		if err != nil {
			w.cfg.Logger.Warn("can't read the first answer of a repeated command", "command", c.ID, "sequence", p.sequence()+uint64(i), "error", err)
			answer(refusal(c, notReadYet(p)))
			return
		}
		e, err := es.ReadEvent(m)
		if err != nil {
			w.cfg.Logger.Error("can't read the first answer of a repeated command", "command", c.ID, "error", err)
			answer(refusal(c, notReadYet(p)))
			return
		}
		if e.Command.Digest != c.Digest {
			answer(refusal(c, es.Refuse("id-reused", "command id "+c.ID+" was used for "+c.Ref.String()+" with another body at event "+sequenceText(e.Sequence),
				"a repeat must be the same to the letter; for something else use a new id")))
			return
		}
		addEvent(&first, e)
	}
	first.Repeated = true
	answer(first)
}

// notReadYet is the refusal of a repeat whose first answer can't be made now. That the command is done is known.
func notReadYet(first place) *es.Refusal {
	return busy("repeat-not-read", fmt.Sprintf("the command was done before, from event %d on, but its first answer can't be read now", first.sequence()), maxRetryAfter)
}

// unsettled is the answer to a command whose answer is not made yet, when its sender is kept waiting no longer.
func (w *Writer) unsettled(j *job) es.Answer {
	if j.repeat != 0 && j.rests <= w.confirmed.Sequence {
		return refusal(j.command, notReadYet(j.repeat))
	}
	return unknown(j.command)
}

func sortByOrdinal(jobs []*job) {
	slices.SortFunc(jobs, func(a, b *job) int {
		switch {
		case a.ordinal < b.ordinal:
			return -1
		case a.ordinal > b.ordinal:
			return 1
		}
		return 0
	})
}
