// Package spelling finds what a mistyped word may have meant.
//
// It owns how far a word may be from the one that was meant, and the order of the suggestions. It leaves to its callers which
// words there are and how a suggestion is put to a person.
//
// Invariants: the same arguments give the same suggestions, best first, whatever the order of the known words; a word
// that is known needs none.
package spelling
