// Package walk is the pure core of the rollout engine: from events to what is to be done next, and to why the rest does not move.
//
// It owns the engine's state ([State.Take], [State.Apply]), which step begins or ends next and when to look again ([State.Next]), and the typed
// reasons of everything that waits ([State.Blocked]). It leaves to the writer whether what it asks for is so, to rollout all that needs a clock,
// a bus or a goroutine, and to rollout/plan which steps a rollout has.
//
// What comes in is events, answers to what was asked ([State.Answered]), nodes that are away ([State.SetAway]) and the time; what goes out is
// [Action]s, each of them a command. Nothing is asked twice while it is under way.
//
// Invariants: nothing here reads a clock or waits. What is known is what the events say: besides the answers that are under way and the nodes that
// are away, a state that has read the stream is equal to every other one that has. An answer that refuses only delays; it is never remembered
// as a fact. A look costs as much as has changed, not as much as there is.
package walk
