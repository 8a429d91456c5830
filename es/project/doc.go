// Package project folds the event stream into buckets: the runner that reads once for many views, the position that each
// bucket carries in itself, what happens when an event can't be folded (a view stops, or parks it by name), what people have
// decided about a view, how far each one is, the check of a bucket against a fresh fold, and how a bucket is mended, or followed
// by a new generation of it, while it is read.
//
// It owns the order and the exactly-once of values. It leaves what a value says to views (package projections), how a
// decision about a view is recorded to the aggregate of projections, and the store and the buckets to es/natsstore and es/natskv
// behind small interfaces.
//
// Invariants: a bucket's position is the header of its own last message and never decreases; every value is published
// guarded by the bucket's own last sequence, so a second projector, a redelivery or an old process is refused by the
// store; only what follows from events alone goes into a bucket, also what is parked and skipped; no event that concerns a view is
// passed in silence; no view waits for another's trouble; who reads a view's bucket, through a switch to the next generation too,
// finds nothing older than what they have read before.
package project
