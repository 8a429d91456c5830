// Package agent makes the chain true on a node: it learns what the node is told, brings that about by its drivers, and reports what
// came of it and what really runs.
//
// It owns what an agent knows and remembers ([State], pure), the loop that acts on it, health, observation, and the form in which agents
// check in. It leaves how a module is brought to a node to agent/driver, how artifacts come to agent/artifacts, what every agent
// last said to agent/desk, and what follows from reports to the writer.
//
//	       told (hint, check-in)          finding, verdict
//	               │                            │
//	               ▼                            ▼
//	file ◄──► State ── Next ──► one action ──► driver
//	               │                            │
//	               ▼                            ▼
//	        reports ──► outbox ──► inbox     outcome ──► State
//
// # Invariants
//
//   - Order comes from the sequences of events alone: an instruction counts only if it is later than the one that is known. No clock
//     decides anything but when to try again.
//   - The state is on disk before an action begins and after it has ended, so a kill at any moment leaves either nothing, or something begun
//     that is settled at the next start by what the driver finds.
//   - A report is on disk with the change of state that it tells of, and keeps its id: sent any number of times, it is recorded once.
//   - One action at a time. A module comes after what it requires, and goes before it.
//   - Nothing is done on a node that somebody else manages, or that the chain does not know.
package agent
