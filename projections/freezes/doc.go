// Package freezes is the view of freezes: what each selects, when it holds, why, and whether it was lifted.
//
// It owns the fold into [chain.Freeze]. It leaves whether a freeze holds at a moment to the deciders.
//
// Invariants: declaring replaces all that is said and starts anew; lifting keeps what was declared and adds when it ended.
package freezes
