// Package content tells whether two things have the same content, and how large it is, without keeping it.
//
// It owns the [Digest], by which a state answers "the same again", and the [Measure], by which a record is refused before it
// grows over its limit. It leaves to others what is compared and what the limit is.
//
// Invariants: both depend on the content alone, never on the machine or on the order of a map.
package content
