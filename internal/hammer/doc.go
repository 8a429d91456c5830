// Package hammer sends commands to a writer as fast as it takes them, and says how fast that was.
//
// It owns the load: how many callers wait for answers, what they ask for, how long, and the histogram of what they waited. The
// commands are real ones, decided by the real rules: nodes are told to run modules, each time in another version, so that every
// command leaves an event. It leaves starting a chain, and what the figures are compared with, to internal/hammer/bench.
//
// Invariants:
//   - A load ends only when every command that was sent has its answer: no figure counts what is merely on its way.
//   - Answers are counted by status, so that a writer which refuses quickly does not look fast.
package hammer
