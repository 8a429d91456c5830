// Package commands holds the intents: one file per aggregate, each command a struct with its shape validation, the
// registry that decodes them from the bus, and the client for Go programs.
//
// It owns the payloads' field names and the checks that need no state. It leaves every rule that depends on state to
// aggregates, and how commands travel to es/dispatch.
//
// Invariants: a payload that validates names exactly one aggregate instance, with names that can be keys; decoding refuses
// what it does not know, so that a misspelt field is never silently dropped.
package commands
