// Package track decides about tracks: the only source of plans that nobody asked for by hand.
//
// It owns which modules a track carries, by which strategy, and on what. It leaves to the engine when to plan, and to rollout what
// a plan is.
//
// Invariants: a module is on one track at most, so that no two plan for it. A track names modules that are registered and a strategy
// that is declared.
package track
