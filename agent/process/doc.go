// Package process runs the commands of drivers and checks: to their end, or not at all.
//
// It owns process groups and how they end. It leaves what is run, what its output means and where it goes to its callers.
//
// Invariants: when Run returns because its context ended, nothing of the command's process group runs any more; a command that leaves
// a process behind and ends well is taken at its word, and does not hold Run up by output that is still open. What a program that was
// killed has left at work is ended by the next one before that runs anything, where the system has a /proc to find it in.
package process
