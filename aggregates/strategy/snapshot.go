package strategy

import "catenary/aggregates/snapshot"

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Name(s.Digest)
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	return State{Status: Status(r.Kind(uint8(Ended) + 1)), Digest: r.Name()}
}
