// Package answers brings the server's answers to messages that are published into a stream to those that wait for them.
//
// It owns the one subscription that the answers come to, the time that each is waited for, and their reading. It leaves to others
// what is published and with which guard, what is in flight, and what an answer or its absence means.
//
// It is what the client's own asynchronous publisher is, at half of the cost: all wait equally long, so one timer serves them, nearly
// all answers are of one form, and nobody waits but who published.
//
// Invariants:
//   - Whoever waits is told once: the answer, or why there is none.
//   - What went out on a connection that is gone is given up, since the answer went there too.
package answers
