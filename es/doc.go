// Package es is the domain-free event-sourcing core.
//
// It owns the vocabulary that everything else speaks: names and keys, events and the form they are stored in, the codec and
// the registry of event types with their upcasters, the hash chain, commands with their answers and refusals, deciders,
// and the contract of a [Store].
//
// It leaves to others: where events are kept (es/natsstore, es/memstore), how commands travel and are committed
// (es/dispatch), how events become views (es/project), and every rule of the domain.
//
// Invariants:
//   - An event, once stored, is immutable; its order is its sequence in the stream, never a clock.
//   - Stored names (event types, header names) are explicit constants, never derived from Go names.
//   - Every append is guarded by the stream's own last sequence, so whoever appends has seen all that stands before.
//   - Every stored event carries a hash over itself and its predecessor's hash.
package es
