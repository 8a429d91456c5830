// Package actor decides about whoever stands behind an opaque id.
//
// It owns one rule: an actor is forgotten once. It leaves the names to the actor directory, which a decider never sees, and erasing
// them to whoever takes the command in.
package actor
