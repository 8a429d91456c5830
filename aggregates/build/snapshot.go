package build

import (
	"catenary/aggregates/snapshot"
	"catenary/events"
)

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Number(uint64(s.Reask))
	w.Number(uint64(s.Bytes))
	w.Digest(s.Spec)
	w.Digest(s.Outcome)
	for _, text := range []string{s.Module, s.Commit, s.ReuseKey, s.Other, s.Published.Artifact} {
		w.Text(text)
	}
	w.Flag(s.Published.Package != nil)
	if s.Published.Package != nil {
		w.Text(s.Published.Package.Name)
		w.Text(s.Published.Package.Version)
	}
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	s := State{
		Status: Status(r.Kind(uint8(Failed) + 1)), Reask: Reask(r.Kind(uint8(Reasked) + 1)), Bytes: r.Small(), Spec: r.Digest(), Outcome: r.Digest(),
		Module: r.Text(), Commit: r.Text(), ReuseKey: r.Text(), Other: r.Text(), Published: events.Reference{Artifact: r.Text()},
	}
	if r.Flag() {
		s.Published.Package = &events.Package{Name: r.Text(), Version: r.Text()}
	}
	return s
}
