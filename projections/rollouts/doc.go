// Package rollouts holds the view of rollouts: what each carries, how far each tier is, and why nothing moves.
//
// It owns the counts, by tier and by how steps stand. It leaves the steps themselves to the view of steps: no record here grows with
// the number of nodes.
//
// Invariants: a final state never changes. What blocks a rollout is gone as soon as something moves. Tiers stand in the order they
// are walked.
package rollouts
