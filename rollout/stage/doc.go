// Package stage puts the writer's decisions and the engine's beside each other on one clock, without a bus, for tests.
//
// It owns sending commands to a real [aggregates.World] ([Ledger]), letting a real [walk.State] walk on what comes of them, and nodes of straw that report
// what they are told to. It leaves to its users what happens when, and what has to come of it.
//
// Invariants: all that happens is in the events, from which another engine, or another world, is made at any time. Nothing waits for a clock: time
// goes on when the user says so.
package stage
