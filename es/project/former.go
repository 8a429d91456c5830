package project

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

const (
	// DefaultKeepFormer is for how long a generation that readers were sent away from is kept, so that people can look at what was
	// wrong with it.
	DefaultKeepFormer = 24 * time.Hour
	// minFormer is how long it is kept even if its name is needed for a new one. A reader relies on a pointer for a quarter of a second, so
	// whoever began to read it then has ended.
	minFormer = 10 * time.Minute
	// DefaultTidyInterval is how often former generations are looked at.
	DefaultTidyInterval = time.Hour
)

// tidy removes former generations that have been kept long enough, at once and then now and then.
func (r *Runner) tidy(ctx context.Context) {
	if r.cfg.Generations == nil {
		return
	}
	tick := time.NewTicker(r.cfg.TidyInterval)
	defer tick.Stop()
	for {
		for _, w := range r.workers {
			if _, err := r.cfg.removeFormer(ctx, w.name, r.cfg.KeepFormer, maxFormer); err != nil && ctx.Err() == nil {
				r.cfg.Logger.Warn("former generations of a view could not be removed; they are looked at again", "view", w.name, "after", r.cfg.TidyInterval, "reason", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// maxFormer bounds how many are removed at a look: the next one goes on.
const maxFormer = 100

// removeFormer removes generations of a view that nothing points at, the oldest first, at most so many. Each has been left by readers, or was given
// up by who built it, for so long at least. What the pointer names as the present or the next one is never removed. It gives how many
// were.
func (c *Config) removeFormer(ctx context.Context, view string, kept time.Duration, most int) (removed int, err error) {
	for removed < most {
		// In this order: a pointer that was read after a bucket was there names it, unless it was left or given up before.
		stored, err := c.Generations.List(ctx, view)
		if err != nil {
			return removed, err
		}
		p, err := c.Generations.Pointer(ctx, view)
		if err != nil {
			return removed, err
		}
		now := c.Clock()
		due, ok := p.due(stored, now.Add(-kept))
		if !ok {
			return removed, nil
		}
		// The pointer says so first: who begins a generation after that finds a changed pointer, and no bucket of this name.
		err = c.Generations.Point(ctx, view, p.remove(due, now))
		if errors.Is(err, es.ErrConflict) {
			return removed, nil // somebody else is at it
		}
		if err == nil {
			err = c.Generations.Remove(ctx, due)
		}
		if err != nil {
			return removed, errors.Wrapf(err, "remove generation %d of view %s", due.Number, view)
		}
		c.Logger.Info("a former generation was removed", "view", view, "bucket", due.Bucket)
		removed++
	}
	return removed, nil
}

// due gives the generation that was left before a moment and before all others.
func (p Pointer) due(stored []Stored, before time.Time) (oldest Stored, ok bool) {
	var left time.Time
	for _, s := range stored {
		if s.Bucket == p.Bucket || p.Next != nil && s.Bucket == p.Next.Bucket {
			continue
		}
		at := s.Changed
		if i := p.former(s.Bucket); i >= 0 && p.Former[i].Until.After(at) {
			at = p.Former[i].Until
		}
		if !at.After(before) && (!ok || at.Before(left)) {
			oldest, left, ok = s, at, true
		}
	}
	return oldest, ok
}

// former gives the place of a bucket among the former ones; below zero for none.
func (p Pointer) former(bucket string) int {
	return slices.IndexFunc(p.Former, func(g Generation) bool { return g.Bucket == bucket })
}

// remove gives the pointer that says that a generation was removed. When it was read, and why it was made, stay known until its name comes
// again.
func (p Pointer) remove(s Stored, now time.Time) Pointer {
	p.Former = slices.Clone(p.Former)
	i := p.former(s.Bucket)
	if i < 0 {
		i, p.Former = len(p.Former), append(p.Former, s.Generation)
	}
	p.Former[i].Removed = now.UTC()
	return p
}

// follow gives the generation that may follow on the present one. When all names are taken, that of the oldest former one is used again, as
// soon as it may be removed.
func (b *rebuilding) follow(ctx context.Context, p Pointer) (Generation, error) {
	next, err := b.cfg.Generations.Follow(ctx, b.worker.name, p)
	if !errors.Is(err, es.ErrFull) {
		return next, err
	}
	removed, removeErr := b.cfg.removeFormer(ctx, b.worker.name, minFormer, 1)
	switch {
	case removeErr != nil:
		return next, errors.CombineErrors(err, removeErr)
	case removed == 0:
		return next, err
	}
	return next, errors.Mark(errors.Newf("the oldest former generation of view %s was removed for a new one", b.worker.name), errGivenUp)
}

// discard removes a generation that was given up: nobody was ever sent there, and it takes the room of the one that is built in its place.
func (b *rebuilding) discard(ctx context.Context, givenUp Generation) {
	stored, err := b.cfg.Generations.List(ctx, b.worker.name)
	for _, s := range stored {
		if err == nil && s.Bucket == givenUp.Bucket {
			err = b.cfg.Generations.Remove(ctx, s)
		}
	}
	if err != nil {
		b.cfg.Logger.Warn("a generation that was given up is still there; it is removed later", "view", b.worker.name, "bucket", givenUp.Bucket, "reason", err)
	}
}
