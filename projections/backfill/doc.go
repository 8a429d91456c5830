// Package backfill is the view of what was added to a record's history after the fact. Its values stand in a bucket of their
// own, so that the newest value of a record's own key is always the one that stands.
//
// It owns the form of added values and their keys' prefix. It leaves to the reader of chain what an added value means at its
// place between the others.
//
// Invariants: an added value says what was told then and nothing of what was so before or after, so the view needs no state;
// facts of which nothing can be added are refused rather than passed over.
package backfill
