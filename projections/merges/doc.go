// Package merges holds the view of merges: which wait and why, and which rollout carries each.
//
// Invariants: a merge keeps its rollout when it waits again; what told us of it is kept byte for byte; when it was placed stays until it
// waits again.
package merges
