// Package mirrors makes and keeps the ops account's read copies of the ledger's buckets.
//
// It owns how a mirror is compared with its bucket, made anew, waited for and removed. It leaves which buckets are mirrored, and what a
// mirror looks like, to internal/topology, and the accounts to who runs the server: an embedded one, or one that a projector's process reaches
// with the credentials of the mirrors user.
//
// Invariants: a mirror that is left in place held the same values as its bucket when it was looked at; nothing waits for a mirror that
// does not follow longer than a bound.
package mirrors
