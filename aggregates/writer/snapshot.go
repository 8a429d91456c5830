package writer

import "catenary/aggregates/snapshot"

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) { w.Signed(s.Started) }

// Restored reads a state.
func Restored(r *snapshot.Reader) State { return State{Started: r.Signed()} }
