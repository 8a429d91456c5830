// Package check judges what a run with faults has left behind: what senders were told, the event stream, the buckets with their copies, and
// what runs on nodes.
//
// It owns the invariants, one file each. It leaves to the harness how all that was come by, and shares nothing with the programs
// that it judges but the form of events and the pure folds of the views.
//
// The invariants:
//
//	I1  an accepted command stands in the stream exactly once, as it was answered; one that was refused does not
//	I2  versions have no gaps, and what senders were told is one order that agrees with the time at which they were told
//	I3  each event carries the hash of all before it, and every checkpoint agrees with the stream
//	I4  the buckets hold what the events give, with all earlier values, and their copies hold the same
//	I5  what was assigned stands or has ended; it is never gone
//	I6  a step begins once for each try and ends once for each begin, under a lease
//	I7  a node runs what it was told last, and was never brought back to something older
//	I8  after the faults everything is caught up and can be written to within a bound
//
// # Invariants
//
//   - The same evidence always gives the same violations.
//   - What can't be told counts for the programs: a violation is something that no order of what happened allows.
package check
