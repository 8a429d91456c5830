// Package published is the view of publications: which artifact or package exists, which build made it, what is attested of
// it, and whether it is vetoed.
//
// It owns the fold into [chain.Published]. It leaves what a build says it published to the view of builds.
//
// Invariants: a veto names who wanted it, which is the one it was sent for when a tool sent it; lifting it takes it out of
// the record, and the history keeps it.
package published
