// Package aggregates is the model of the world that commands are decided on.
//
// It owns the [World]: the state of every aggregate instance and the indexes that rules over several of them need, the rules
// that hold for every command (effective times, backfills, sizes), and going back to an earlier point. The rules of each
// aggregate are in the package of its name, which decides on values alone and says which small part of the world it
// needs. It leaves to others how commands come in and how events are kept (es/dispatch), and the shape of payloads (commands).
//
// Invariants:
//   - All of it is pure: what a command leads to depends on the events applied so far and on the command alone. There is no
//     clock, no context, no I/O and no chance in it.
//   - A world that went back to a mark is the world that a fresh fold up to that mark gives.
//   - A backfill counts in its instance's version and changes nothing else.
//   - An event that the world can't fold is an error, never passed over: whoever decides on a world that left something out
//     decides wrongly.
package aggregates
