// Package merge decides about merges: commits that came onto a branch and are to be carried by a rollout.
//
// It owns whether a merge waits and which rollout carries it. It leaves to rollout what carrying is, and to the engine which merges
// go together.
//
// Invariants: a merge belongs to one rollout, the one that took it last; while it waits it stays with that, even when that is
// final, until another takes it. A merge that goes alone shares its rollout with no other. What was released waits again only
// when somebody says anew why.
package merge
