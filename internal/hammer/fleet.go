package hammer

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Fleet is what the commands of a load are about: nodes that are told to run modules, in a new version each time. The zero
// value is of no use; see [NewFleet].
type Fleet struct {
	nodes, modules int
	name           string
	next           atomic.Uint64
}

// NewFleet returns a fleet of so many nodes and modules, whose names begin with name: their product is the number of
// aggregates that the load spreads over. One of each makes a single hot aggregate.
func NewFleet(name string, nodes, modules int) *Fleet {
	return &Fleet{name: name, nodes: max(nodes, 1), modules: max(modules, 1)}
}

// Setup gives the commands that make nodes and modules known. They MUST be done before the others.
func (f *Fleet) Setup() []es.Payload {
	setup := make([]es.Payload, 0, f.nodes+f.modules)
	for i := range f.nodes {
		setup = append(setup, commands.RegisterNode{Node: f.node(i), ManagedBy: events.ManagedByExternal})
	}
	for i := range f.modules {
		setup = append(setup, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: f.module(i)}})
	}
	return setup
}

// Next gives the next command. It is safe for many goroutines. No two commands of a fleet are the same, so each of them is
// accepted and leaves one event.
func (f *Fleet) Next() es.Payload {
	n := f.next.Add(1)
	module := f.module(int(n) / f.nodes % f.modules)
	return commands.Assign{
		Node: f.node(int(n) % f.nodes), Module: module, Reason: "release",
		Reference: events.Reference{Package: &events.Package{Name: module, Version: "1." + strconv.FormatUint(n, 10)}},
	}
}

func (f *Fleet) node(i int) string   { return fmt.Sprintf("%s-node-%05d.example.org", f.name, i) }
func (f *Fleet) module(i int) string { return fmt.Sprintf("%s-module-%03d", f.name, i) }
