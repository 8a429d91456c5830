// Package projections has the one list of views that are folded from the events into the buckets of the chain. Each view is
// a package of its own below this one.
//
// It owns which views there are. It leaves what a record says to the views, its JSON and its keys to chain, and reading,
// positions and storing to es/project.
//
// Invariants: a view is a pure fold, so the same events give the same bytes in every place; it shows what was recorded and
// does not judge it; what stands is never changed by a backfilled event, and what was added to the history stands apart in
// a bucket of its own.
package projections
