package dispatch

import (
	"context"
	"time"

	"catenary/es"
)

const (
	// compactLook is how often the stream's tail is looked at for a new base; it costs the server less than an append.
	compactLook = time.Second
	// compactRest is how many times the length of a compaction is rested after it: under a load that never ends, a tenth of the
	// time at most goes into compacting.
	compactRest = 9
	// maxRest bounds one rest, so that a compaction comes to its end.
	maxRest = 50 * time.Millisecond
	// stopPart is the part of SnapshotEvery from which on a base is made when the writer stops: for less, the next start is
	// quick as it is.
	stopPart = 5
	// stopPatience bounds that, so that a process ends when it is told to.
	stopPatience = 3 * time.Second
)

// unpaced lets a start go on at full speed.
func unpaced() error { return nil }

// gently rests after each piece of work for twice as long as the piece took, so that whoever waits for a processor gets it,
// and ends with the context. On a busy machine pieces take longer, and so do the rests.
func gently(ctx context.Context) func() error {
	began := time.Now()
	return func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(2*time.Since(began), maxRest)):
		}
		began = time.Now()
		return nil
	}
}

// compactBeside makes new bases beside the working writer, and gives the function that ends it.
//
// It folds the last base and the events after it into a model of its own: what stands in the stream is confirmed, so the
// writer has no part in it and waits for nothing.
func (w *Writer) compactBeside(ctx context.Context) (stop func()) {
	if w.cfg.Snapshots == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	last := make(chan uint64, 1)
	base := w.base
	go func() { last <- w.cfg.compactOn(ctx, base) }()
	return func() {
		cancel()
		w.base = <-last
	}
}

// compactOn makes a new base whenever enough events have come since the last, until the context ends. It gives the event of
// the newest base.
func (c Config) compactOn(ctx context.Context, base uint64) uint64 {
	for wait := compactLook; ; {
		select {
		case <-ctx.Done():
			return base
		case <-time.After(wait):
		}
		wait = compactLook
		tail, err := c.Store.Tail(ctx)
		if err != nil || tail < base+uint64(c.SnapshotEvery) {
			continue // the writer itself says when the store is away
		}
		began := time.Now()
		made, err := c.compact(ctx)
		took := time.Since(began)
		wait = max(compactLook, compactRest*took)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.Logger.Warn("no snapshot could be made, the next start reads more of the stream", "after", base, "next try in", wait, "error", err)
		default:
			base = made.Sequence
			c.Logger.Info("snapshot made", "sequence", base, "took", took)
		}
	}
}

// compact makes a base of the last one and of what stands after it.
func (c Config) compact(ctx context.Context) (es.Head, error) {
	pace := gently(ctx)
	f, err := c.load(ctx, pace)
	if err != nil {
		return es.Head{}, err
	}
	if err := f.replay(ctx, c, 1, pace); err != nil {
		return es.Head{}, err
	}
	return f.head, c.save(ctx, f, pace)
}

// Keep makes a base of the writer's world when the next start would have much to read. It is for a writer whose
// [Writer.Run] has returned nil, when nobody waits for its process any more; of any other it makes none. It takes a few seconds at
// most. A failure is logged: the next start takes longer.
func (w *Writer) Keep(ctx context.Context) {
	if !w.atRest || w.cfg.Snapshots == nil || w.confirmed.Sequence < w.base+uint64(w.cfg.SnapshotEvery/stopPart) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	w.keep(ctx)
}

// keep makes a base of the writer's own world. It MUST be called without an upper layer. A failure is no reason not to work:
// the next start takes longer.
func (w *Writer) keep(ctx context.Context) {
	if w.cfg.Snapshots == nil {
		return
	}
	f := &fold{model: w.model, memory: w.memory, head: w.confirmed}
	began := time.Now()
	if err := w.cfg.save(ctx, f, func() error { return ctx.Err() }); err != nil {
		w.cfg.Logger.Warn("no snapshot could be made, the next start reads more of the stream", "after", w.base, "error", err)
		return
	}
	w.base = f.head.Sequence
	w.cfg.Logger.Info("snapshot made", "sequence", w.base, "took", time.Since(began))
}
