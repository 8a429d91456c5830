package dispatch

import (
	"context"
	"iter"
	"runtime"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
)

// forgetEvery is how many events are folded before old command ids are looked for.
const forgetEvery = 10_000

func sequenceText(n uint64) string { return strconv.FormatUint(n, 10) }

// start brings the writer to the end of the stream, from the newest base or from the first event, and records its start.
func (w *Writer) start(ctx context.Context) error {
	began := time.Now()
	if err := w.patiently(ctx, w.loadBase); err != nil {
		return err
	}
	loaded, from := time.Since(began), w.confirmed.Sequence
	if err := w.takeOver(ctx); err != nil {
		return err
	}
	w.cfg.Logger.Info("world folded", "snapshot", w.base, "loading", loaded, "sequence", w.confirmed.Sequence, "reading", time.Since(began)-loaded)
	if w.confirmed.Sequence >= from+uint64(w.cfg.SnapshotEvery) {
		// The next start would take as long as this one did: nothing else has this fold at rest.
		w.keep(ctx)
	}
	return nil
}

// loadBase takes over what the newest base holds, once.
func (w *Writer) loadBase(ctx context.Context) error {
	if w.loaded {
		return nil
	}
	f, err := w.cfg.load(ctx, unpaced)
	if err != nil {
		return err
	}
	w.model, w.memory, w.confirmed, w.head, w.base = f.model, f.memory, f.head, f.head, f.head.Sequence
	w.loaded = true
	return nil
}

// takeOver takes in all that stands after the confirmed head, then records that this writer goes on from there, which no
// other can have overtaken. While others append at the same time it reads on and tries again. When the store is full the record
// is owed: the writer works, and answers what leaves no events.
func (w *Writer) takeOver(ctx context.Context) error {
	for {
		if err := w.patiently(ctx, w.catchUp); err != nil {
			return err
		}
		f, err := w.startFlight()
		if err != nil {
			return err
		}
		failpoint.Pass(failpoint.WriterBeforeStart)
		err = w.meanwhile(func() error { return es.Wait(ctx, w.cfg.Store.Append(ctx, f.before, f.messages)) })
		if err != nil && !errors.IsAny(err, es.ErrFull, es.ErrTooLarge) {
			err = w.settle(ctx, f)
		}
		switch {
		case err == nil:
			w.confirmed, w.owed = w.head, nil
			w.model.Release(w.model.Mark())
			w.tellStore(nil)
			w.tellStands()
			return nil
		case errors.Is(err, es.ErrConflict):
			w.retract(f)
		case errors.Is(err, es.ErrFull):
			w.retract(f)
			if w.owed == nil {
				w.cfg.Logger.Error("the writer's start can't be recorded: until there is room, no command that leaves events is done", "error", err)
			}
			w.owed = err
			w.tellStore(err)
			w.tellStands()
			return nil
		default:
			w.retract(f)
			return errors.Wrap(err, "record the writer's start")
		}
	}
}

// retract takes back the writer's own first command, which was not stored.
func (w *Writer) retract(f *flight) {
	own := f.jobs[0]
	w.model.Rollback(own.mark)
	w.head = f.before
	w.memory.drop(own.command.Ref, own.command.ID)
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

// patiently reads, trying again while the store can't be reached. Senders who wait meanwhile are told unknown in time.
func (w *Writer) patiently(ctx context.Context, read func(context.Context) error) error {
	pace := backoff.NewExponentialBackOff()
	pace.MaxInterval = w.cfg.Patience / 4
	for {
		err := w.meanwhile(func() error { return read(ctx) })
		if !errors.Is(err, es.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		w.cfg.Logger.Warn("can't read the stream, trying again", "after", w.confirmed.Sequence, "error", err)
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
			return err
		}
	}
}

// meanwhile does something that waits for the store. Senders whose patience ends meanwhile are told unknown; nothing of theirs may
// be touched by it.
func (w *Writer) meanwhile(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	patience := time.NewTicker(w.cfg.Patience / 4)
	defer patience.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-patience.C:
			w.answerImpatient()
		}
	}
}

// catchUp folds what stands after the confirmed head. It MUST be called without an upper layer. After an error marked
// es.ErrUnavailable it can be called again: it goes on where it stopped.
func (w *Writer) catchUp(ctx context.Context) error {
	f := &fold{model: w.model, memory: w.memory, head: w.confirmed}
	err := f.replay(ctx, w.cfg, runtime.GOMAXPROCS(0), unpaced)
	w.confirmed, w.head = f.head, f.head
	w.model.Release(w.model.Mark())
	return err
}

// takeIn folds messages as they come.
func (w *Writer) takeIn(messages iter.Seq2[es.Message, error]) error {
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
		w.memory.extend(e.Command.Ref, e.Command.ID, e.Sequence)
		if e.Sequence%forgetEvery == 0 {
			w.memory.forget(w.cfg.Now())
		}
	}
	return nil
}
