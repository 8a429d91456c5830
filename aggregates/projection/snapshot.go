package projection

import (
	"github.com/cockroachdb/errors"

	"catenary/aggregates/snapshot"
)

// Snapshot writes the state; of the events that were left out how far each lies from the one before.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Flag(s.Paused)
	w.Number(uint64(len(s.Skipped)))
	before := uint64(0)
	for _, event := range s.Skipped {
		w.Number(event - before)
		before = event
	}
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	s := State{Paused: r.Flag()}
	n := r.Number()
	if n > MaxSkips {
		r.Fail(errors.Newf("a projection leaves out %d events: the limit is %d", n, MaxSkips))
		return s
	}
	before := uint64(0)
	for range n {
		before += r.Number()
		s.Skipped = append(s.Skipped, before)
	}
	return s
}
