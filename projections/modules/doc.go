// Package modules is the view of modules: what was last said of each, since when it is known, and whether it was forgotten.
//
// It owns the fold into [chain.Module]. It leaves whether a module may be forgotten to the deciders.
//
// Invariants: registering and changing replace all that is said; forgetting keeps it and adds when it ended.
package modules
