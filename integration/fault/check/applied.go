package check

import (
	"cmp"
	"slices"

	"catenary/es"
	"catenary/events"
)

// Applied judges I7.
func Applied(ev Evidence) []Violation {
	f := &findings{invariant: "I7"}
	type place struct{ node, module string }
	type told struct {
		version string
		source  uint64
	}
	last := map[place]told{}
	sources := map[uint64]told{}
	tell := func(e es.Event, node, module, version string) {
		t := told{version, e.Sequence}
		last[place{node, module}], sources[e.Sequence] = t, t
	}
	for _, e := range ev.Events {
		switch d := e.Data.(type) {
		case events.AssignmentAssigned:
			tell(e, d.Node, d.Module, version(d.Reference))
		case events.AssignmentMovedIn:
			tell(e, d.Node, d.Module, version(d.Reference))
		case events.AssignmentEnded:
			tell(e, d.Node, d.Module, "")
		case events.AssignmentMovedOut:
			tell(e, d.Node, d.Module, "")
		case events.AssignmentApplied:
			if t, ok := sources[d.Source]; d.Source != 0 && (!ok || t.version != version(d.Reference)) {
				f.say("event %d says that %s runs %s by instruction %d, which told %q", e.Sequence, d.Node, version(d.Reference), d.Source, t.version)
			}
		}
	}
	for _, n := range ev.Nodes {
		if t := last[place{n.Node, n.Module}]; t.version != n.Version {
			f.say("%s runs %q of %s, and was told %q by event %d", n.Node, n.Version, n.Module, t.version, t.source)
		}
		if !slices.IsSorted(n.Applied) {
			f.say("%s was brought back to an older instruction for %s: it has done %v in this order", n.Node, n.Module, n.Applied)
		}
	}
	return f.list
}

// version is what an agent calls the version of something: that of the package, or the digest of the artifact.
func version(r events.Reference) string {
	if r.Package != nil {
		return r.Package.Version
	}
	return cmp.Or(r.Artifact, "")
}
