package module

import "catenary/aggregates/snapshot"

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Texts(s.Requires)
	w.Labels(s.Labels)
	w.Digest(s.Content)
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	return State{Status: Status(r.Kind(uint8(Ended) + 1)), Requires: r.Texts(), Labels: r.Labels(), Content: r.Digest()}
}
