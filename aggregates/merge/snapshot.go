package merge

import "catenary/aggregates/snapshot"

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Flag(s.Known)
	w.Flag(s.Waiting)
	w.Flag(s.Alone)
	w.Text(s.Rollout)
	w.Digest(s.Content)
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	return State{Known: r.Flag(), Waiting: r.Flag(), Alone: r.Flag(), Rollout: r.Text(), Content: r.Digest()}
}
