package assignment

import (
	"maps"
	"slices"
	"unique"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/snapshot"
	"catenary/events"
)

// Snapshots writes and reads the states of one snapshot. Many nodes run the same: what is run stands in it once.
type Snapshots struct {
	numbers map[unique.Handle[Run]]uint64
	runs    []unique.Handle[Run]
}

// newRun is written for a run that stands here for the first time; others are numbers above it.
const newRun = 0

// Snapshot writes a state.
func (x *Snapshots) Snapshot(s State, w *snapshot.Writer) {
	w.Number(uint64(s.Status))
	w.Number(uint64(s.ToldBytes))
	w.Number(uint64(s.SeenBytes))
	w.Digest(s.Observed)
	w.Number(s.Told)
	w.Number(uint64(s.report))
	if s.runs() {
		x.writeRun(s.run, w)
	} else if w.Flag(s.hasRun()); s.hasRun() {
		x.writeRun(s.run, w)
	}
	w.Flag(s.extra != nil)
	if s.extra != nil {
		w.Texts(s.extra.requiredBy)
		w.Blob(s.extra.provisioning)
		w.Number(uint64(len(s.extra.inputs)))
		for _, h := range s.extra.inputs {
			w.Text(h.Node)
			w.Text(h.Module)
			writeValues(h.Values, w)
			w.Texts(h.Changed)
		}
		writeValues(s.extra.outputs, w)
	}
}

func writeValues(values map[string]string, w *snapshot.Writer) {
	w.Number(uint64(len(values)))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		w.Text(name)
		w.Text(values[name])
	}
}

func (x *Snapshots) writeRun(run unique.Handle[Run], w *snapshot.Writer) {
	if n, ok := x.numbers[run]; ok {
		w.Number(n)
		return
	}
	if x.numbers == nil {
		x.numbers = map[unique.Handle[Run]]uint64{}
	}
	x.numbers[run] = newRun + 1 + uint64(len(x.numbers))
	w.Number(newRun)
	r := run.Value()
	for _, text := range []string{r.Artifact, r.Package, r.Version, r.Build, r.Commit, r.Rollout} {
		w.Text(text)
	}
}

// Restored reads a state.
func (x *Snapshots) Restored(r *snapshot.Reader) State {
	s := State{Status: Status(r.Kind(uint8(Ended) + 1)), ToldBytes: r.Small(), SeenBytes: r.Small(), Observed: r.Digest()}
	s.Told, s.report = r.Number(), Report(r.Kind(uint8(Drifted)+1))
	if s.runs() || r.Flag() {
		s.run = x.readRun(r)
	}
	if r.Flag() {
		x := &extra{requiredBy: r.Texts(), provisioning: r.Blob()}
		r.Rows(func(int) {}, func() {
			x.inputs = append(x.inputs, events.Handed{StepName: events.StepName{Node: r.Text(), Module: r.Text()}, Values: readValues(r), Changed: r.Texts()})
		})
		x.outputs = readValues(r)
		s.extra = x
	}
	return s
}

func readValues(r *snapshot.Reader) map[string]string {
	var values map[string]string
	r.Rows(func(n int) {
		if n > 0 {
			values = map[string]string{}
		}
	}, func() {
		name := r.Text()
		values[name] = r.Text()
	})
	return values
}

func (x *Snapshots) readRun(r *snapshot.Reader) unique.Handle[Run] {
	n := r.Number()
	switch {
	case n == newRun:
		run := unique.Make(Run{Artifact: r.Text(), Package: r.Text(), Version: r.Text(), Build: r.Text(), Commit: r.Text(), Rollout: r.Text()})
		x.runs = append(x.runs, run)
		return run
	case n-newRun-1 < uint64(len(x.runs)):
		return x.runs[n-newRun-1]
	}
	r.Fail(errors.Newf("run %d is not known", n))
	return unique.Make(Run{})
}
