// Package dispatch brings commands from the bus to a decider and their events into the store.
//
// It owns the command's envelope on the bus, the micro service and its client, the writer (one world, one order, guarded
// appends, exactly-once answers), the choice of the cheapest safe append, the translation of people's names into opaque actor ids
// and their erasure; the inbox, which keeps commands until they are done, with its receipts and what is parked; the record of
// refused commands; and the sender's outbox. It leaves the rules to an es.Decider, the shape of payloads to a decoder, and storage to
// an es.Store.
//
// Invariants:
//   - Commands are decided one after another on the whole of what stands, so all of them are strictly serializable.
//   - An answer leaves only after everything it was decided on is durable.
//   - (aggregate, key, id) is a command's identity: a repeat gets the first answer, another body is refused.
//   - A command whose append is unclear is never answered rejected, unchanged or expired.
package dispatch
