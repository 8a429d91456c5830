// Package exec is the driver that runs a command of the operator's.
//
// It owns what a command is told, and what its exit code means. It leaves running it to agent/process.
//
// # What a command is told
//
// The record of the assignment, as JSON, on standard input, and in the environment:
//
//	CATENARY_ACTION    apply, remove, check or observe
//	CATENARY_NODE      CATENARY_MODULE
//	CATENARY_VERSION   the version of the package, or the digest of the artifact
//	CATENARY_PACKAGE   CATENARY_ARTIFACT   CATENARY_BUILD   CATENARY_COMMIT   CATENARY_ROLLOUT
//	CATENARY_SOURCE    the sequence of the event that told it; the same again means the same instruction again
//	CATENARY_ATTEMPT   from 1
//	CATENARY_OUTPUTS   a file in which apply may leave NAME=VALUE lines for whatever waits for the module
//	CATENARY_INPUT_*   what others have handed on: CATENARY_INPUT_DB_PORT is the value port of the module db
//	CATENARY_CHANGED   the names of those of these variables whose value is new, another than before, or gone
//
// A name that several values would have is left out; the record has all of them, with the nodes they come from.
//
// # What it answers
//
// Exit code 0 is done. Exit code 69 of apply or check means that it has changed nothing and is not the one for this. Any other ends
// the apply: what has changed the node half-way is for no other driver to go on with.
//
// Observe writes what runs to standard output, as CATENARY_VERSION has it, and nothing when nothing does.
//
// An agent that was killed before it had taken the outputs takes them from the file at its next start, when observe finds what was to run. So apply
// leaves them before that can be seen.
package exec
