// Package natsstore keeps the stream of events in JetStream.
//
// It owns the [es.Store] over one stream: guarded appends, of one message in a pipeline or of whole batches; reads and
// followers over unfiltered consumers; creating the stream and refusing one whose configuration is not safe; and, in
// nats_errors.go, the one place where errors of NATS and JetStream become those of package es.
//
// It leaves to others: the connection, which is given and never closed here; what is in an event and whether the hash
// chain holds (es); what to do after an unclear append ([es.Settle]); and how appends are grouped (es/dispatch).
//
// Invariants:
//   - Every append stands directly after the event that its sender had seen, known by its hash, or nowhere. A batch is stored
//     whole or not at all.
//   - Tail and Get are answered by the stream's leader, never by a follower that lags behind.
//   - A reader gives sequences in rising order, each at most once; a gap in the stream itself is passed on, not hidden, so
//     that the check of the hash chain finds it.
//   - All that follow the stream's end through one store share one consumer, and none of them waits for another.
//   - What is in flight is bounded, in messages and in bytes: past the bound an append waits, nothing is dropped.
package natsstore
