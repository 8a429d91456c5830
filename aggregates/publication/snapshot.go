package publication

import (
	"catenary/aggregates/content"
	"catenary/aggregates/snapshot"
)

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Flag(s.Recorded)
	w.Number(uint64(s.Bytes))
	w.Text(s.Build)
	w.Text(s.Commit)
	w.Text(s.Module)
	w.Number(uint64(len(s.Attested)))
	for _, d := range s.Attested {
		w.Digest(d)
	}
	w.Flag(s.Veto != nil)
	if s.Veto != nil {
		w.Text(s.Veto.By)
		w.Text(s.Veto.Reason)
	}
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	s := State{Recorded: r.Flag(), Bytes: r.Small(), Build: r.Text(), Commit: r.Text(), Module: r.Text()}
	r.Rows(func(n int) { s.Attested = make([]content.Digest, 0, n) }, func() { s.Attested = append(s.Attested, r.Digest()) })
	if r.Flag() {
		s.Veto = &Veto{By: r.Text(), Reason: r.Text()}
	}
	return s
}
