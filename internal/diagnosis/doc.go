// Package diagnosis names what is wrong with a chain, and what to do about it, from what its processes say and from who says nothing.
//
// It owns the judgement: what all evidence together means, how bad it is, and the figures that are held against thresholds. It leaves to its
// caller where the evidence comes from: each piece may be missing, with an error that says why, and that is evidence too.
//
// Invariants: it is pure, the same for the same evidence; nothing that is wrong is left out because something else is wrong too, but for what
// only follows from a bus that can't be reached.
package diagnosis
