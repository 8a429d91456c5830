// Package logs keeps what is said while modules are brought to nodes, by span: one try of one deed of one agent.
//
// It owns the stream of logs, the service in front of it, the keeper by which an agent hands in its own ([Keeper]), and reading and
// following ([Client]). It leaves what is said to the drivers, and who may hand in what to the accounts.
//
// Invariants:
//   - Writing never fails a deed and never waits for the bus. What can't be kept is left out, and the part after it says how much.
//   - A part has whole lines, where they are not longer than a part.
//   - The parts of a span are numbered; a part that was handed in twice is shown once.
package logs
