// Package steps holds the view of steps: each change of a rollout, from what to what, when its node was told and what became of it.
//
// It owns one record a step. It leaves their counts to the view of rollouts.
//
// Invariants: a step that was told and has no outcome stays so, whatever becomes of its rollout. What was planned never changes.
package steps
