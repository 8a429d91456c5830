package rollout

import (
	"time"

	"catenary/aggregates/snapshot"
	"catenary/es"
	"catenary/events"
)

// Snapshot writes the state.
func (s State) Snapshot(w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Text(s.Reverts)
	w.Text(s.RevertedBy)
	w.Flag(s.Begun)
	w.Number(uint64(len(s.Targets)))
	for _, t := range s.Targets {
		w.Text(t.Module)
		writeVersion(&t.Version, w)
	}
	if s.Status == Unknown || s.Status.Final() {
		return
	}
	w.Text(s.ID)
	w.Text(s.Reason)
	w.Texts(s.Supersedes)
	w.Blob(s.Strategy)
	w.Number(uint64(s.Bytes))
	w.Number(uint64(s.Parts))
	w.Number(uint64(s.Count))
	w.Number(uint64(s.Ends))
	w.Blob(s.Digest[:])
	w.Number(uint64(s.Entered))
	w.Signed(s.PausedAt)
	w.Signed(int64(s.Paused))
	w.Digest(s.Holds)
	for _, tier := range s.Tiers {
		for _, n := range []int{tier.Steps, tier.Pending, tier.Done, tier.Failed, tier.Unknown, tier.Skipped} {
			w.Number(uint64(n))
		}
		w.Flag(tier.Approved)
		w.Signed(tier.Moved)
		w.Signed(int64(tier.PausedThen))
	}
}

// Restored reads a state.
func Restored(r *snapshot.Reader) State {
	s := State{Status: Status(r.Kind(uint8(Superseded) + 1)), Reverts: r.Text(), RevertedBy: r.Text(), Begun: r.Flag()}
	r.Rows(func(n int) { s.Targets = make([]events.Target, 0, min(n, 1024)) }, func() {
		t := events.Target{Module: r.Text()}
		if v := readVersion(r); v != nil {
			t.Version = *v
		}
		s.Targets = append(s.Targets, t)
	})
	if s.Status == Unknown || s.Status.Final() {
		return s
	}
	s.ID, s.Reason, s.Supersedes, s.Strategy, s.Bytes = r.Text(), r.Text(), r.Texts(), r.Blob(), r.Small()
	s.Parts, s.Count, s.Ends = number(r), number(r), number(r)
	copy(s.Digest[:], r.Blob())
	s.Entered, s.PausedAt, s.Paused, s.Holds = number(r), r.Signed(), time.Duration(r.Signed()), r.Digest()
	var err error
	if s.Tiers, err = tiersOf(s.Strategy); err != nil {
		r.Fail(err)
		return State{}
	}
	for i := range s.Tiers {
		tier := &s.Tiers[i]
		tier.Steps, tier.Pending, tier.Done, tier.Failed, tier.Unknown, tier.Skipped = number(r), number(r), number(r), number(r), number(r), number(r)
		tier.Approved, tier.Moved, tier.PausedThen = r.Flag(), r.Signed(), time.Duration(r.Signed())
	}
	if s.Entered > len(s.Tiers) {
		s.Entered = len(s.Tiers)
	}
	return s
}

func number(r *snapshot.Reader) int { return int(r.Small()) }

// Snapshot writes the step.
func (s Step) Snapshot(w *snapshot.Writer) {
	w.Text(s.Tier)
	w.Number(uint64(s.Phase))
	w.Number(uint64(s.Attempt))
	w.Number(uint64(s.Spent))
	w.Signed(s.Begun)
	w.Signed(s.Ended)
	w.Signed(int64(s.Paused))
	w.Signed(s.Due)
	writeVersion(s.Before, w)
	writeVersion(s.After, w)
	w.Number(uint64(len(s.WaitsFor)))
	for _, f := range s.WaitsFor {
		writeName(f.StepName, w)
		w.Flag(f.Notify)
	}
	w.Number(uint64(len(s.Notifies)))
	for _, n := range s.Notifies {
		writeName(n, w)
	}
	w.Flag(s.Refresh)
	w.Number(uint64(s.Notified))
}

// RestoredStep reads a step.
func RestoredStep(r *snapshot.Reader) Step {
	s := Step{
		Tier: r.Text(), Phase: Phase(r.Kind(uint8(Skipped) + 1)), Attempt: number(r), Spent: number(r),
		Begun: r.Signed(), Ended: r.Signed(), Paused: time.Duration(r.Signed()), Due: r.Signed(), Before: readVersion(r), After: readVersion(r),
	}
	r.Rows(func(int) {}, func() { s.WaitsFor = append(s.WaitsFor, events.WaitFor{StepName: readName(r), Notify: r.Flag()}) })
	r.Rows(func(int) {}, func() { s.Notifies = append(s.Notifies, readName(r)) })
	s.Refresh, s.Notified = r.Flag(), number(r)
	return s
}

func writeName(n events.StepName, w *snapshot.Writer) {
	w.Text(n.Node)
	w.Text(n.Module)
}

func readName(r *snapshot.Reader) events.StepName {
	return events.StepName{Node: r.Text(), Module: r.Text()}
}

func writeVersion(v *events.Version, w *snapshot.Writer) {
	if w.Flag(v != nil); v == nil {
		return
	}
	w.Text(v.Artifact)
	if w.Flag(v.Package != nil); v.Package != nil {
		w.Text(v.Package.Name)
		w.Text(v.Package.Version)
	}
	w.Text(v.Build)
	w.Text(v.Commit)
}

func readVersion(r *snapshot.Reader) *events.Version {
	if !r.Flag() {
		return nil
	}
	v := &events.Version{Reference: events.Reference{Artifact: r.Text()}}
	if r.Flag() {
		v.Package = &events.Package{Name: r.Text(), Version: r.Text()}
	}
	v.Build, v.Commit = r.Text(), r.Text()
	return v
}

// StepKey is the key of a step in the world: that of its rollout, and its own names.
func StepKey(rollout string, n events.StepName) string {
	return rollout + "." + es.Key(n.Node, n.Module)
}
