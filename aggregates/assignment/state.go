package assignment

import (
	"unique"

	"catenary/aggregates/build"
	"catenary/aggregates/content"
	"catenary/aggregates/module"
	"catenary/aggregates/node"
	"catenary/aggregates/publication"
	"catenary/events"
)

// Status is how an assignment stands.
type Status uint8

// The statuses of an assignment.
const (
	None Status = iota
	Standing
	Pending
	Ended
)

// State is what rules need of an assignment. It is small: there is one for each module on each node.
type State struct {
	Status Status
	// ToldBytes and SeenBytes bound the two parts of the record's size.
	ToldBytes, SeenBytes uint32
	// Observed stands for the last report since the node was last told something; zero when there is none.
	Observed content.Digest
	// Told is the sequence of the event by which the node was last told something.
	Told uint64
	// report is what the node has said of it.
	report Report
	// run is what is to be run; nodes that run the same share it. It is set while the assignment stands or waits, and holds
	// no more than the rollout when that has ended it.
	run unique.Handle[Run]
	// extra is nil for most.
	extra *extra
}

// Run is what a node is told to run.
type Run struct {
	Artifact, Package, Version string
	Build, Commit, Rollout     string
}

// extra is shared by states: it is never changed.
type extra struct {
	requiredBy   []string
	provisioning events.Raw
	// inputs are what the node was handed with what it was told, or what it may have of that when nothing stands; outputs what it last reported to
	// hand on.
	inputs  []events.Handed
	outputs map[string]string
}

// orNone gives nil for an extra that holds nothing.
func (x extra) orNone() *extra {
	if len(x.requiredBy) == 0 && len(x.provisioning) == 0 && len(x.inputs) == 0 && len(x.outputs) == 0 {
		return nil
	}
	return &x
}

// Stands says whether the node is told to run the module.
func (s State) Stands() bool { return s.Status == Standing }

// Run gives what is to be run; it is empty when nothing stands or waits.
func (s State) Run() Run {
	if !s.runs() {
		return Run{}
	}
	return s.run.Value()
}

// runs says whether there is something to be run.
func (s State) runs() bool { return s.Status == Standing || s.Status == Pending }

// hasRun says whether there is a run, if only the rollout of one.
func (s State) hasRun() bool { return s.run != unique.Handle[Run]{} }

// At gives what the node is told to be at; nil when nothing stands.
func (s State) At() *events.Version {
	if !s.Stands() {
		return nil
	}
	r := s.Run()
	return &events.Version{Reference: r.Reference(), Build: r.Build, Commit: r.Commit}
}

// RequiredBy names the modules that pulled it in. It is empty for what was assigned for its own sake.
func (s State) RequiredBy() []string {
	if s.extra == nil {
		return nil
	}
	return s.extra.requiredBy
}

// OwnSake says whether it stands for its own sake, and not because something requires it.
func (s State) OwnSake() bool { return s.Stands() && len(s.RequiredBy()) == 0 }

// Provisioning is what the node is handed besides.
func (s State) Provisioning() events.Raw {
	if s.extra == nil {
		return nil
	}
	return s.extra.provisioning
}

// Outputs are what the module hands on: what its node has reported of it last, if it stands there.
func (s State) Outputs() map[string]string {
	if s.extra == nil || !s.Stands() {
		return nil
	}
	return s.extra.outputs
}

// Reference is the artifact or package to be run.
func (r Run) Reference() events.Reference {
	if r.Package != "" {
		return events.Reference{Package: &events.Package{Name: r.Package, Version: r.Version}}
	}
	return events.Reference{Artifact: r.Artifact}
}

func running(ref events.Reference, build, commit string) Run {
	r := Run{Artifact: ref.Artifact, Build: build, Commit: commit}
	if ref.Package != nil {
		r.Package, r.Version = ref.Package.Name, ref.Package.Version
	}
	return r
}

// told gives what a node is told.
func (r Run) told(node, module, reason string) events.Told {
	return events.Told{
		Node: node, Module: module, Reference: r.Reference(), Build: r.Build, Commit: r.Commit, Rollout: r.Rollout, Reason: reason,
	}
}

// told gives what a node was told, to be told again.
func (s State) told(node, module, reason string) events.Told {
	t := s.Run().told(node, module, reason)
	t.RequiredBy, t.Provisioning, t.Inputs = s.RequiredBy(), s.Provisioning(), s.inputs()
	return t
}

// World is what deciding about an assignment needs of everything else.
type World interface {
	Node(name string) node.State
	Module(name string) module.State
	Build(id string) build.State
	Publication(ref events.Reference) publication.State
	Assignment(node, module string) State
	// StandingOn gives the modules that stand on the node, in order.
	StandingOn(node string) []string
	// Requirers gives the registered modules that require the module, in order.
	Requirers(module string) []string
	// Newest gives the newest publication of the module that is not vetoed.
	Newest(module string) (ref events.Reference, p publication.State, ok bool)
}
