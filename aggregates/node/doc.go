// Package node decides about nodes: the places modules run on.
//
// It owns the rules for registering, relabelling and retiring. It leaves to others what stands on a node (assignment).
//
// Invariants: who acts on a node never changes while it is registered. Retiring ends all that stands or waits on the node
// in the same append, and only with the exact count of it.
package node
