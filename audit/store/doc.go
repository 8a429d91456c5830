// Package store is the audit store: one SQLite file, derived from the events, that answers questions about any moment.
//
// It owns the file's schema, the fold of events into intervals, and the answers to the questions of package audit. It leaves
// the questions themselves and how they travel to audit, the shape of records to chain and their fold to the views it is given.
//
// # Two times
//
// What was so has a valid time, when it was true, and a known time, when it was recorded. A row of record says what one event
// told of one key, from when until when that was so as far as is known now, and since when it is known. It also says what was thought
// of the time after that, until the next event was known: its outlook. What else was thought, before something was added to the history,
// stands in past. Together they cover, for each key, the plane of both times from its first event on without a gap, and nothing
// twice:
//
//	known ▲            │ b, known since Rb          an event b, recorded at Rb and effective at Eb, comes after a:
//	   Rb │─ a ────────┼──────────────────          a keeps what is before Eb; that a would be so from Eb on
//	      │ a          │ the outlook of a            was thought until Rb
//	   Ra └────────────┴─────────────────▶ valid
//	     Ea            Eb
//
// # Invariants
//
//   - The position, the last event taken in, is written in the transaction that takes it in: the file is whole at every moment.
//   - One connection writes. Readers have connections that can't, and see one state for as long as a question takes.
//   - An event that this program can't fold parks its instance. It is never passed over in silence: every answer it may touch says so.
//   - What people decide about the store holds for the whole file, which is built anew when it does not honour it.
//   - No name of a person stands anywhere but in the table actor.
package store
