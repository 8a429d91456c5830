// Package check judges what became of rollouts, by their history alone.
//
// It owns a fold of its own, made to be read and not to be fast, and one rule a file about what has to be so. It leaves to the simulator how a
// history comes to be. It imports neither the deciders nor the engine: what is wrong there can't hide here.
//
// Invariants: the same history always gives the same list. A rule speaks of what was recorded and of what reached a node, never of what somebody
// meant to do.
package check
