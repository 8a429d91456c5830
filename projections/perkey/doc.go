// Package perkey holds the views in which each instance of one aggregate has one record under its own key: a fold of a
// record and an event into the next record is all that such a view has to say.
//
// It owns the records that stand, when an event concerns a view at all, and that the key of an event and that of its record
// agree. It leaves what a record says to the packages beside it.
//
// Invariants: the state is the values that stand in the bucket and nothing else, byte for byte, so that a view taken up from
// its bucket goes on with what one that never stopped would give; a backfilled event leads to no value here; a key, once
// there, is never removed.
package perkey
