// Package assignment decides about assignments: what a node is told to run, and what it reports.
//
// It owns the rules for assigning, ending, moving and waiting, what is pulled in with a module and ends with it, what others hand on to
// it, and which reports say something new. It leaves to others what can be assigned (module, build, publication) and where (node).
//
// Invariants:
//   - An assignment is ended, never deleted.
//   - With a module stands all that it requires, transitively. What was only pulled in names the modules that require it and
//     ends, in the same append, when none of them stands any more.
//   - A module does not leave a node on which another one that stands requires it.
//   - A vetoed publication is told to a node only by somebody who gives a reason.
//   - What a module hands on is what its node has reported of it last, while it stands there. What it is handed counts as changed until the node has
//     brought about what it was told with it.
//   - A backfill adds to history for its own key alone, and changes nothing that stands.
package assignment
