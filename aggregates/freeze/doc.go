// Package freeze decides about freezes: times in which rollouts change nothing of what they select.
//
// It owns the rules for declaring and lifting, and says whether a freeze holds for a module on a node at a moment. It leaves
// to rollouts what follows from that: a freeze never blocks what a person assigns by hand.
package freeze
