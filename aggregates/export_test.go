package aggregates

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Dump gives all that the world holds, to be compared with another.
func (w *World) Dump() map[string]string {
	d := map[string]string{}
	dumpTable(d, "module", w.modules)
	dumpTable(d, "node", w.nodes)
	dumpTable(d, "commit", w.commits)
	dumpTable(d, "build", w.builds)
	dumpTable(d, "publication", w.publications)
	dumpTable(d, "assignment", w.assignments)
	dumpTable(d, "freeze", w.freezes)
	dumpTable(d, "lease", w.leases)
	dumpTable(d, "projection", w.projections)
	dumpTable(d, "merge", w.merges)
	dumpTable(d, "track", w.tracks)
	dumpTable(d, "strategy", w.strategies)
	dumpTable(d, "rollout", w.rollouts)
	dumpTable(d, "writer", w.writers)
	for key, step := range w.steps.All() {
		d["step "+key] = withoutPointers(step) + fmt.Sprintf(" from %+v to %+v", step.Before, step.After)
		of, _, _ := strings.Cut(key, ".")
		d["steps of "+of] = fmt.Sprintf("%q", w.stepsOf.Members(of))
	}
	for key, in := range w.merges.All() {
		if in.state.Rollout != "" {
			d["merges of "+in.state.Rollout] = fmt.Sprintf("%q", w.mergesOf.Members(in.state.Rollout))
		}
		d["merge "+key+" in full"] = fmt.Sprintf("%+v", in.state)
	}
	for module, name := range w.trackOf.All() {
		d["track of "+module] = name
	}
	for _, in := range w.tracks.All() {
		if in.state.Strategy != "" {
			d["tracks of "+in.state.Strategy] = fmt.Sprintf("%q", w.tracksOf.Members(in.state.Strategy))
		}
	}
	for key := range w.assignments.All() {
		s := w.assignments.state(key)
		d["assignment "+key+" in full"] = fmt.Sprintf("%+v %q %s", s.Run(), s.RequiredBy(), s.Provisioning())
	}
	for key := range w.publications.All() {
		if veto := w.publications.state(key).Veto; veto != nil {
			d["veto "+key] = fmt.Sprintf("%+v", *veto)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		for what, members := range map[string][]string{
			"requirers": w.requirers.Members(name), "assigned on": w.assignedOn.Members(name), "standing of": w.standingOf.Members(name),
			"published": slices.Collect(w.published.Newest(name)),
		} {
			if len(members) > 0 {
				d[what+" "+name] = fmt.Sprintf("%q", members)
			}
		}
	}
	for key, id := range w.reusable.All() {
		d["reusable "+key] = id
	}
	for fence, key := range w.fences.All() {
		d[fmt.Sprint("fence ", fence)] = key
	}
	for key, at := range w.renewed.All() {
		d["renewed "+key] = fmt.Sprint(at)
	}
	return d
}

func dumpTable[S any](d map[string]string, kind string, t instances[S]) {
	for key, in := range t.All() {
		d[kind+" "+key] = fmt.Sprintf("%d %d %s", in.version, in.latest, withoutPointers(in.state))
	}
}

// withoutPointers shows a state; where it points to is shown elsewhere, since the address says nothing.
func withoutPointers(state any) string {
	return addresses.ReplaceAllString(fmt.Sprintf("%+v", state), "@")
}

var addresses = regexp.MustCompile(`0x[0-9a-f]+`)
