// Package rollout is the engine that walks rollouts: it reads the event stream, decides what is due, and asks the writer for it.
//
// It owns the one loop in which all that comes in meets ([Engine.Run]), the lease under which one engine walks and others stand by, the sending
// of what is due, and the plans that nobody asks for: those of tracks, and those that take a failed rollout back. It leaves what is due and why
// the rest waits to rollout/walk, how a plan is made to rollout/plan, and whether something is so to the writer.
//
//	events ─┐
//	answers ─┤                        ┌─► commands, under the fence of the lease
//	lease ───┼─► loop: fold, decide ──┤
//	nodes ───┤    (no I/O, no wait)   └─► planner: one merged summary, never against itself
//	time ────┘
//
// Invariants: the loop does no I/O and waits for nothing but its inputs; those of a millisecond are one batch. A command goes out under the fence of
// the lease, or not at all: an engine whose lease may have run out asks for nothing. Nothing is kept besides the events: an engine that was killed
// is replaced by any other that has read them.
package rollout
