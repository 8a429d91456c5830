// Package tracks holds the view of tracks: which modules are carried by which strategy, and on what.
//
// Invariants: an ended track keeps what it was.
package tracks
