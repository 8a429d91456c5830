// Package projection decides about projections: that one is paused, goes on, or leaves an event out.
//
// It owns that a decision is recorded once. It leaves to the projectors what follows from it, and to whoever sends a skip to
// look whether the projection stands at that event: a writer knows no projector and no bucket.
//
// Invariants: an event that was left out once is left out for good, whatever is decided later.
package projection
