// Package builds is the view of builds: what each was asked to make, what became of asking, what it made and what it
// published.
//
// It owns the fold into [chain.Build] and its request. It leaves which step may follow which to the deciders.
//
// Invariants: the state is there while there is no outcome and goes with it; the request stays beside the outcome, with why
// nobody waited any more; when the request came to its end first is not overwritten by an outcome that comes later.
package builds
