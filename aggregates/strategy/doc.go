// Package strategy decides about strategies: how rollouts walk over the nodes.
//
// It owns under which name which strategy is known. It leaves what a strategy may say to events, and how a rollout walks by it
// to rollout.
//
// Invariants: a strategy is stored in its canonical form, with the digest of that. A rollout keeps the one it was planned with,
// so declaring another under the same name changes nothing that is under way. A strategy that a track names is not ended.
package strategy
