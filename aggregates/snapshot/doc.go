// Package snapshot writes what aggregates hold as bytes, and reads it back.
//
// It owns the form: rows of numbers, flags, digests and texts, in blocks. A text that comes again is a number from then on,
// and all texts of a block are one piece of memory when they are read: a world that was read back is smaller, and far
// quicker made, than one that was folded. It leaves to others what is in a row (the aggregates), in which order rows come
// (the world), and whether the bytes are still what was written (es/dispatch).
//
// Invariants: equal rows in equal order give equal bytes. Reading never panics, and takes no more memory on
// the word of a number alone than a block has, whatever the bytes are.
package snapshot
