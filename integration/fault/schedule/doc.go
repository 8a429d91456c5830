// Package schedule says what happens in a run with faults, and when: a pure function of a seed.
//
// It owns the kinds of faults, what they strike, and how they are drawn. It leaves to integration/fault how a fault is done, and to the
// clients how commands are drawn: they take their own seeds from the same one.
//
// # Invariants
//
//   - The same seed and shape always give the same schedule, on every machine.
//   - All faults are over when the span is.
package schedule
