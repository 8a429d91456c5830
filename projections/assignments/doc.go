// Package assignments is the view of assignments: what each node was told to run, since when, and what it last reported.
//
// It owns the fold into [chain.Assignment], the present of both told and ran. It leaves facts that were added to the history
// to the view of backfilled values.
//
// Invariants: an ended assignment keeps what was told, so that a reader sees what it was that ended; a report never changes
// what was told, nor the other way round.
package assignments
