package freeze

import (
	"catenary/aggregates/snapshot"
	"catenary/es"
	"catenary/events"
)

// Snapshot writes the state. There are few freezes: what they select is written as it is in events.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Digest(s.Content)
	declared, err := es.Msgpack{}.Marshal(events.FreezeDeclared{Selector: s.Selector, Window: s.Window})
	if err != nil {
		w.Fail(err)
	}
	w.Blob(declared)
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	s := State{Status: Status(r.Kind(uint8(Lifted) + 1)), Content: r.Digest()}
	declared := r.Blob()
	if len(declared) == 0 {
		return s
	}
	var e events.FreezeDeclared
	if err := (es.Msgpack{}).Unmarshal(declared, &e); err != nil {
		r.Fail(err)
	}
	s.Selector, s.Window = e.Selector, e.Window
	return s
}
