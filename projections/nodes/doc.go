// Package nodes is the view of nodes: their labels, who acts on them, since when they are known, and whether they were
// retired.
//
// It owns the fold into [chain.Node]. It leaves what a retired node was told to run to the view of assignments, which
// reads the events that ended it.
//
// Invariants: retiring keeps labels and adds when; registering again starts anew.
package nodes
