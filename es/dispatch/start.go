package dispatch

import (
	"context"
	"strconv"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

func sequenceText(n uint64) string { return strconv.FormatUint(n, 10) }

// start reads the whole stream and records the writer's start.
func (w *Writer) start(ctx context.Context) error { return w.takeOver(ctx) }

// takeOver takes in all that stands after the confirmed head, then records that this writer goes on from there, which no
// other can have overtaken. While others append at the same time it reads on and tries again.
func (w *Writer) takeOver(ctx context.Context) error {
	for {
		if err := w.catchUp(ctx); err != nil {
			return err
		}
		f, err := w.startFlight()
		if err != nil {
			return err
		}
		err = es.Wait(ctx, w.cfg.Store.Append(ctx, f.before.Sequence, f.messages))
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
	j.command = es.Command{ID: w.cfg.NewID(), Ref: w.cfg.Start.Ref(), Verb: w.cfg.Start.Verb(), Data: w.cfg.Start, Actor: w.cfg.Actor, Received: w.cfg.Now().UTC()}
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

// catchUp folds what stands after the confirmed head. It MUST be called without an upper layer.
func (w *Writer) catchUp(ctx context.Context) error {
	messages := es.VerifyChain(&w.confirmed, w.cfg.Store.Read(ctx, w.confirmed.Sequence))
	var run commandRun
	for m, err := range messages {
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
		run.add(w.memory, e)
	}
	w.head = w.confirmed
	w.model.Release(w.model.Mark())
	w.memory.forget(w.cfg.Now())
	return nil
}

// commandRun gathers the events of one command, which stand side by side.
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
