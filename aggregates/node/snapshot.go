package node

import "catenary/aggregates/snapshot"

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Flag(s.External)
	w.Labels(s.Labels)
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	return State{Status: Status(r.Kind(uint8(Retired) + 1)), External: r.Flag(), Labels: r.Labels()}
}
