// Package plan makes plans: which modules change on which nodes, from what to what, in which tiers and in which order.
//
// It owns reading what a plan needs of the chain ([Read], [Restored], [Reverted]), making the plan ([Make]), and dividing it into the
// commands that write it down ([Plan.Commands]). It leaves to aggregates whether the plan is recorded, and to the engine how it is walked.
//
// Invariants: Make is pure. What is right already is no part of a plan, so a plan without steps writes nothing. What stands and would
// change, but must not, is left out with a reason, never in silence. Every step stands behind those it waits for; steps that wait for
// each other in a circle are refused by name.
package plan
