// Package health keeps what a process says of itself: how each of its parts is, since when, why, and what to do about it.
//
// It owns the registry of checks, the two answers over HTTP (/healthz and /readyz), and the query catenary.query.health, which every
// process in the ledger answers, so that one question on the bus finds all that is wrong. It leaves to the parts what they say: their checks are
// set by what happens in them, and only what nobody tells is looked at, when somebody asks.
//
// Invariants:
//   - /healthz depends on this process alone. It fails only for what a restart mends, so a bus that is away never has a process
//     started again and again.
//   - /readyz fails as long as any check fails. A warning lets it stand.
//   - Since is when a check came to its state, however often it was asked for or said again.
//   - Who keeps no registry may say as much to a nil one: nothing is kept then.
package health
