package dispatch

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/es"
)

func sequenceText(n uint64) string { return strconv.FormatUint(n, 10) }

// takeOver takes in all that stands after the confirmed head, then records that this writer goes on from there, which no
// other can have overtaken. While others append at the same time it reads on and tries again.
func (w *Writer) takeOver(ctx context.Context) error {
	for {
		if err := w.takeIn(ctx); err != nil {
			return err
		}
		f, err := w.startFlight()
		if err != nil {
			return err
		}
		err = es.Wait(ctx, w.cfg.Store.Append(ctx, f.before, f.messages))
		if err != nil && !errors.IsAny(err, es.ErrFull, es.ErrTooLarge) {
			err = w.settle(ctx, f)
		}
		switch {
		case err == nil:
			w.confirmed = w.head
			w.model.Release(w.model.Mark())
			return nil
		case errors.Is(err, es.ErrConflict):
			w.model.Rollback(f.jobs[0].mark)
			w.head = f.before
			w.memory.drop(f.jobs[0].command.Ref, f.jobs[0].command.ID)
		default:
			return errors.Wrap(err, "record the writer's start")
		}
	}
}

// startFlight decides the writer's own first command.
func (w *Writer) startFlight() (*flight, error) {
	j := &job{answer: func(es.Answer) {}, mark: w.model.Mark(), before: w.head}
	j.command = es.Command{ID: w.cfg.NewID(), Ref: w.cfg.Start.Ref(), Verb: w.cfg.Start.Verb(), Data: w.cfg.Start, Actor: w.cfg.Actor, Received: w.now()}
	keyed, err := w.model.Decide(j.command)
	if err != nil {
		return nil, errors.Wrap(err, "decide the writer's start")
	}
	if err := w.record(j, j.command, keyed); err != nil {
		return nil, errors.Wrap(err, "record the writer's start")
	}
	if len(j.messages) == 0 {
		return nil, errors.New("the writer's start gave no event: it can't be told from its predecessor")
	}
	j.after = w.head
	w.memory.put(j.command.Ref, j.command.ID, placeOf(j.before.Sequence+1, len(j.messages)))
	return &flight{jobs: []*job{j}, messages: j.messages, before: j.before}, nil
}

// takeIn catches up, trying again while the store can't be reached. Senders who wait meanwhile are told unknown in time.
func (w *Writer) takeIn(ctx context.Context) error {
	pace := backoff.NewExponentialBackOff()
	pace.MaxInterval = w.cfg.Patience / 4
	for {
		err := w.catchUp(ctx)
		if !errors.Is(err, es.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		w.cfg.Logger.Warn("can't read the stream, trying again", "after", w.confirmed.Sequence, "error", err)
		w.answerImpatient()
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
			return err
		}
	}
}

// catchUp folds what stands after the confirmed head. It MUST be called without an upper layer. After an error marked
// es.ErrUnavailable it can be called again: it goes on where it stopped.
func (w *Writer) catchUp(ctx context.Context) error {
	if err := w.fold(w.cfg.Store.Read(ctx, w.confirmed.Sequence)); err != nil {
		return err
	}
	w.head = w.confirmed
	w.memory.forget(w.cfg.Now())
	return nil
}

// fold takes in what stands after the confirmed head.
func (w *Writer) fold(messages iter.Seq2[es.Message, error]) error {
	for m, err := range es.VerifyChain(&w.confirmed, messages) {
		if err != nil {
			return errors.Wrapf(err, "read the stream after event %d", w.confirmed.Sequence)
		}
		e, err := w.cfg.Registry.Decode(m)
		if err != nil {
			return errors.Wrap(err, "the writer can't decide on a world it does not understand")
		}
		if err := w.model.Apply(e); err != nil {
			return errors.Wrapf(err, "apply event %d", e.Sequence)
		}
		w.model.Release(w.model.Mark())
		w.foreign.add(w.memory, e)
	}
	return nil
}

// commandRun gathers the events of one command, which stand side by side. A read may end between two of them.
type commandRun struct {
	ref   es.Ref
	id    string
	place place
}

func (r *commandRun) add(m *memory, e es.Event) {
	if e.Command.Ref == r.ref && e.Command.ID == r.id && e.Sequence == r.place.last()+1 {
		r.place = placeOf(r.place.sequence(), r.place.count()+1)
	} else {
		*r = commandRun{ref: e.Command.Ref, id: e.Command.ID, place: placeOf(e.Sequence, 1)}
	}
	m.put(r.ref, r.id, r.place)
}
