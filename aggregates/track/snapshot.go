package track

import "catenary/aggregates/snapshot"

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Texts(s.Modules)
	w.Text(s.Strategy)
	w.Digest(s.Content)
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	return State{Status: Status(r.Kind(uint8(Ended) + 1)), Modules: r.Texts(), Strategy: r.Text(), Content: r.Digest()}
}
