// Package audit answers questions about the events themselves: how far the buckets are, what happened in which order,
// what the views are doing and whether the record is whole. A projector runs the micro service catenary-query, a writer
// catenary-tail; programs ask through [Client].
//
// It owns the questions, their answers and how an answer travels in parts. It leaves folding and comparing to es/project, the
// records people read to chain, and the store to es.
//
// # On the bus
//
// A question goes to catenary.query.<name> with a JSON body. Its answer is one message, or several parts in order: each has the
// header Cat-Part with its number, and the last one says so with Cat-Stream: end. A part without a body says that the service is
// still at it; one comes every second. A question that can't be answered gets the error headers of micro services.
//
// # Invariants
//
//   - An answer is bounded: whoever wants more asks again, from where the answer ended. So a slow asker slows nobody else.
//   - A lost part is noticed: the asker gets an error, never a shorter answer.
//   - Events are read from the stream without a filter and dropped here, except those of one instance: a filtered replay is
//     many times slower.
package audit
