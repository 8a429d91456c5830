// Package strategies holds the view of strategies: the canonical JSON that stands under each name, with its digest.
//
// Invariants: the JSON is that of the event, byte for byte; an ended strategy keeps it.
package strategies
