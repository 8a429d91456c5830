package aggregates

import (
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/assignment"
	"catenary/aggregates/build"
	"catenary/aggregates/freeze"
	"catenary/aggregates/lease"
	"catenary/aggregates/module"
	"catenary/aggregates/node"
	"catenary/aggregates/publication"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Module gives the state of a module.
func (w *World) Module(name string) module.State { return w.modules.state(es.Key(name)) }

// Node gives the state of a node.
func (w *World) Node(name string) node.State { return w.nodes.state(es.Key(name)) }

// Build gives the state of a build.
func (w *World) Build(id string) build.State { return w.builds.state(es.Key(id)) }

// Publication gives the state of what is referred to.
func (w *World) Publication(ref events.Reference) publication.State {
	return w.publications.state(commands.PublicationRef(ref).Key)
}

// Assignment gives the state of a module on a node.
func (w *World) Assignment(node, module string) assignment.State {
	return w.assignments.state(es.Key(node, module))
}

// NodesOf gives the first few nodes, in order, that a module stands on, and the number of all.
func (w *World) NodesOf(module string, most int) (nodes []string, total int) {
	return w.standingOf.First(module, most), w.standingOf.Count(module)
}

// AssignedOn gives the modules that stand or wait on a node, in order.
func (w *World) AssignedOn(node string) []string { return w.assignedOn.Members(node) }

// StandingOn gives the modules that stand on a node, in order.
func (w *World) StandingOn(node string) []string {
	return slices.DeleteFunc(w.assignedOn.Members(node), func(m string) bool { return !w.standingOf.Has(m, node) })
}

// Requirers gives the registered modules that require a module, in order.
func (w *World) Requirers(module string) []string { return w.requirers.Members(module) }

// Reusable gives the first build that succeeded with a reuse key.
func (w *World) Reusable(reuseKey string) (id string, ok bool) { return w.reusable.Get(reuseKey) }

// RecordedFor says whether a publication is recorded, and for which build.
func (w *World) RecordedFor(ref events.Reference) (build string, recorded bool) {
	p := w.Publication(ref)
	return p.Build, p.Recorded
}

// Newest gives the newest publication of a module that is not vetoed: by effective time, and at equal times by the order in
// the stream.
func (w *World) Newest(module string) (events.Reference, publication.State, bool) {
	for key := range w.published.Newest(module) {
		if p := w.publications.state(key); p.Veto == nil {
			ref, err := reference(key)
			return ref, p, err == nil
		}
	}
	return events.Reference{}, publication.State{}, false
}

// reference gives what a publication's key refers to.
func reference(key string) (events.Reference, error) {
	names, err := es.SplitKey(key)
	switch {
	case err != nil:
		return events.Reference{}, err
	case len(names) == 1:
		return events.Reference{Artifact: names[0]}, nil
	case len(names) == 2:
		return events.Reference{Package: &events.Package{Name: names[0], Version: names[1]}}, nil
	}
	return events.Reference{}, errors.Newf("%q is no key of a publication", key)
}

// lease gives the state of a lease with what was noted of it.
func (w *World) lease(key string) lease.State {
	s := w.leases.state(key)
	if at, ok := w.renewed.Get(key); ok {
		s.Renewed = at
	}
	return s
}

// WriterStarted is when the present writer began, in nanoseconds since 1970.
func (w *World) WriterStarted() int64 { return w.writers.state(events.WriterKey).Started }

// Fenced says whether no present lease was taken at the event sequence. A lease that ran out is present until another process
// takes it.
func (w *World) Fenced(fence uint64) bool {
	_, present := w.fences.Get(fence)
	return !present
}

// Frozen gives the names of the freezes, in order, that hold for a place at a moment. It gives an error for a time zone that is
// not known here: whether that freeze holds can't be told.
func (w *World) Frozen(p freeze.Place, at time.Time) ([]string, error) {
	var names []string
	for key, in := range w.freezes.All() {
		holds, err := in.state.Holds(p, at, w.zone)
		if err != nil {
			return nil, errors.Wrapf(err, "freeze %s", key)
		}
		if !holds {
			continue
		}
		name, err := es.UnescapeToken(key)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// zone gives a time zone; reading one again and again is slow.
func (w *World) zone(name string) (*time.Location, error) {
	if z, ok := w.zones[name]; ok {
		return z, nil
	}
	z, err := w.cfg.Zones(name)
	if err == nil {
		w.zones[name] = z
	}
	return z, err
}
