package dispatch

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
)

// Snapshots keeps bases: what the fold of the stream up to an event gave. A writer that has one reads only the events after
// it.
type Snapshots interface {
	// Save keeps what write writes, as the base at an event. It MUST show up whole or not at all, and the one before MUST
	// stay: somebody may be reading it. It gives errors of write, and marked [es.ErrUnavailable], [es.ErrFull] or
	// [es.ErrTooLarge].
	Save(ctx context.Context, sequence uint64, write func(io.Writer) error) error
	// Load opens the newest base below an event; zero means the newest of all. It gives errors marked [es.ErrNotFound] or
	// [es.ErrUnavailable].
	Load(ctx context.Context, below uint64) (sequence uint64, base io.ReadCloser, err error)
}

// Restorable is a model that can be written down and read back.
type Restorable interface {
	es.Decider
	// Form names the rules and the form of what is written: a model reads what one of the same form wrote.
	Form() string
	// Snapshot writes what the events applied so far gave. The same events give the same bytes.
	Snapshot(io.Writer) error
	// Restore makes a new model what the one was that wrote. It reads to the end.
	Restore(io.Reader) error
}

// ErrEventsLost means that the stream ends before an event that a snapshot was taken at, or that the writer has seen. The commands
// behind the lost events would be done again, so nothing may be decided. Bring the stream back from a replica or a backup. Who goes on without the
// events discards the snapshots.
var ErrEventsLost = errors.New("the event stream has lost events")

// errUnusable marks a base that this program can't start from; another may be, or the whole stream.
var errUnusable = errors.New("unusable")

// baseFormat grows with every change of how a base is written, but for the model's part.
const baseFormat = 1

// baseHeader stands first in a base. Format and Sequence keep their names for ever.
type baseHeader struct {
	Format   int     `json:"format"`
	Sequence uint64  `json:"sequence"`
	Hash     es.Hash `json:"hash"`
	// Model is the model's form, Events the fingerprint of the registry.
	Model  string    `json:"model"`
	Events string    `json:"events"`
	Taken  time.Time `json:"taken"`
}

// fold is a model with all that was folded into it: the world, the commands that have events, and the last event.
type fold struct {
	model  es.Decider
	memory *memory
	head   es.Head
}

func (c Config) newFold() *fold { return &fold{model: c.NewModel(), memory: newMemory()} }

// load gives the fold up to the newest base that this program can start from, or the empty one. It gives errors marked
// [ErrEventsLost] and those of the stores.
func (c Config) load(ctx context.Context, pace func() error) (*fold, error) {
	if c.Snapshots == nil {
		return c.newFold(), nil
	}
	for below := uint64(0); ; {
		sequence, base, err := c.Snapshots.Load(ctx, below)
		switch {
		case errors.Is(err, es.ErrNotFound):
			return c.newFold(), nil
		case err != nil:
			return nil, errors.Wrap(err, "load a snapshot")
		}
		f, err := c.restore(ctx, sequence, newFrameReader(base, pace))
		err = errors.CombineErrors(err, errors.Mark(base.Close(), errDamaged))
		switch {
		case err == nil:
			return f, nil
		case ctx.Err() != nil:
			return nil, errors.Mark(errors.Wrapf(err, "snapshot at event %d", sequence), es.ErrUnavailable)
		case !errors.IsAny(err, errUnusable, errDamaged):
			return nil, errors.Wrapf(err, "snapshot at event %d", sequence)
		}
		c.Logger.Warn("snapshot ignored", "sequence", sequence, "reason", err)
		below = sequence
	}
}

// restore reads a base and checks that the stream goes on from it. It gives errors marked [errDamaged], [errUnusable] or
// [ErrEventsLost], and those of the store.
func (c Config) restore(ctx context.Context, sequence uint64, in *frameReader) (*fold, error) {
	h, err := readHeader(in)
	if err != nil {
		return nil, err
	}
	if err := c.checkHeader(ctx, sequence, h); err != nil {
		return nil, err
	}
	f := c.newFold()
	if f.memory, err = readMemory(in, h.Sequence); err != nil {
		return nil, errors.Mark(err, errDamaged)
	}
	model, ok := f.model.(Restorable)
	if !ok {
		return nil, errors.AssertionFailedf("a %T can't be restored", f.model)
	}
	if err := model.Restore(in); err != nil {
		return nil, errors.Mark(err, errDamaged)
	}
	f.head = es.Head{Sequence: h.Sequence, Hash: h.Hash}
	return f, in.close()
}

func readHeader(in io.Reader) (baseHeader, error) {
	var h baseHeader
	size, err := readNumber(in)
	if err == nil && size > frameBytes {
		err = errors.Newf("a header of %d bytes", size)
	}
	if err != nil {
		return h, errors.Mark(err, errDamaged)
	}
	text := make([]byte, size)
	if _, err = io.ReadFull(in, text); err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		return h, errors.Mark(errors.Wrap(err, "header"), errDamaged)
	}
	return h, nil
}

// checkHeader compares a base with the stream, and with what this program makes of events.
func (c Config) checkHeader(ctx context.Context, sequence uint64, h baseHeader) error {
	unusable := func(format string, args ...any) error { return errors.Mark(errors.Newf(format, args...), errUnusable) }
	tail, err := c.Store.Tail(ctx)
	if err != nil {
		return err
	}
	if h.Sequence != sequence || h.Sequence == 0 {
		return errors.Mark(errors.Newf("it says that it was taken at event %d", h.Sequence), errDamaged)
	}
	if tail < h.Sequence {
		return errors.Wrapf(ErrEventsLost, "the stream ends at event %d, and a snapshot was taken at event %d: bring the stream back from a replica or a backup, or accept the loss: start once with --accept-truncated-at %[1]d and --accept-reason",
			tail, h.Sequence)
	}
	form, events := c.form(), c.Registry.Fingerprint()
	switch {
	case h.Format != baseFormat:
		return unusable("it has format %d, this program has %d", h.Format, baseFormat)
	case h.Model != form:
		return unusable("it was made by %q, this program has %q", h.Model, form)
	case h.Taken.After(c.Now().Add(IDMaxAhead)):
		return unusable("it was taken at %s, which is ahead of this clock: ids of commands may have been forgotten in it too early", h.Taken.Format(time.RFC3339))
	case h.Events != events:
		return unusable("it was made by a program that reads events as %s, this one reads them as %s", h.Events, events)
	}
	m, err := c.Store.Get(ctx, h.Sequence)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return unusable("the stream has no event %d", h.Sequence)
	case err != nil:
		return err
	}
	e, err := es.ReadEvent(m)
	if err != nil || e.Hash != h.Hash {
		return unusable("event %d of the stream is not the one it was taken at: it has the hash %.16s…, not %.16s…", h.Sequence, e.Hash, h.Hash)
	}
	return nil
}

// form names the form of the models of this program.
func (c Config) form() string {
	if model, ok := c.NewModel().(Restorable); ok {
		return model.Form()
	}
	return ""
}

// save keeps a fold as a base. Nothing may be applied to it meanwhile.
func (c Config) save(ctx context.Context, f *fold, pace func() error) error {
	model, ok := f.model.(Restorable)
	if !ok {
		return errors.AssertionFailedf("a %T can't be written down", f.model)
	}
	header, err := json.Marshal(baseHeader{
		Format: baseFormat, Sequence: f.head.Sequence, Hash: f.head.Hash, Model: model.Form(), Events: c.Registry.Fingerprint(), Taken: c.Now().UTC(),
	})
	if err != nil {
		return errors.Wrap(err, "header of the snapshot")
	}
	f.memory.forget(c.Now())
	err = c.Snapshots.Save(ctx, f.head.Sequence, func(out io.Writer) error {
		w := newFrameWriter(out, pace)
		if err := writeNumber(w, uint64(len(header))); err != nil {
			return err
		}
		if _, err := w.Write(header); err != nil {
			return err
		}
		if err := f.memory.write(w); err != nil {
			return err
		}
		if err := failpoint.Fail(failpoint.WriterSnapshot); err != nil {
			return err
		}
		if err := model.Snapshot(w); err != nil {
			return err
		}
		return w.close()
	})
	return errors.Wrapf(err, "save the snapshot at event %d", f.head.Sequence)
}
