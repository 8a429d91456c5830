// Package journal holds tables and indexes whose changes can be undone.
//
// It owns the [Log], which remembers how to undo, and the containers that tell it of every change: [Table], [Index] and
// [Timeline]. It knows nothing of what they hold.
//
// Invariants: containers change only through their methods, and each change that is made while a mark is open is
// remembered with it. Undoing and forgetting cost as much as the changes they cover, never as much as the
// containers hold; without an open mark a change costs nothing extra. What a container gives out is a copy or MUST be
// treated as one: a value with slices or pointers is replaced, never changed in place.
package journal
