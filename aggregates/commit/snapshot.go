package commit

import "catenary/aggregates/snapshot"

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) { w.Digest(s.Content) }

// Restored reads a state.
func Restored(r *snapshot.Reader) State { return State{Content: r.Digest()} }
