// Package publication decides about publications: artifacts and packages that exist.
//
// It owns the rules for recording, attesting and vetoing. It leaves to assignment what a veto means for what is assigned.
//
// Invariants: a publication is recorded once. What says a build made it agrees with that build. A veto ends nothing that
// stands.
package publication
