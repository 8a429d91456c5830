// Package desk answers agents that check in, and tells who of them is there.
//
// It owns what each node is told, as agents get it, in memory; when each agent was heard last; and the questions about both. It leaves
// where that comes from (the buckets) to whoever feeds it, and what an agent does with it to the agent.
//
// Invariants:
//   - The record decides: all that is told is a fold of the buckets' values, in any order, since a value counts only if its source is later.
//   - Who knows nothing is told nothing before all that stood when it asked is at hand: it could not tell what is over.
//   - That an agent is there is no part of the record and leaves no event. A desk that was just started does not know yet who is away, and
//     says so.
package desk
