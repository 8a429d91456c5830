package lease

import (
	"time"

	"catenary/aggregates/snapshot"
)

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Text(s.Holder)
	w.Signed(int64(s.TTL))
	w.Number(s.Fence)
	w.Signed(s.Renewed)
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	return State{Status: Status(r.Kind(uint8(Released) + 1)), Holder: r.Text(), TTL: time.Duration(r.Signed()), Fence: r.Number(), Renewed: r.Signed()}
}
