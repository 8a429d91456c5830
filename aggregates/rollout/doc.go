// Package rollout decides about rollouts: the carrying of builds to nodes, tier by tier.
//
// It owns the states of a rollout and of its steps, what each command means in each of them ([Table]), when a tier is
// through, and that beginning a step and telling its node are one append. It leaves to others which steps a plan has (the planner), which
// of them begins next (the engine), and what can be told to a node (assignment).
//
// A rollout goes
//
//	planning → planned → (waiting-approval) → running ⇄ paused → finished | failed | aborted | superseded
//
// and a step waits, is pending from its begin to its end, and ends as done, failed, unknown or skipped.
//
// Invariants:
//   - Final is final: nothing changes the state of a rollout after that. What is pending then stays so, visible, until it is settled.
//   - A plan is none before the event that closes it, which names the count and the digest of all steps.
//   - A step waits only for steps before it in the plan, in its own tier: no plan waits for itself in a circle.
//   - A step begins only where what stands is what the plan was made on. A node that is right already is done at once.
//   - A step is done because its node said so, naming this rollout and this build, or because a person did. Time alone makes it
//     unknown, never done; the time a rollout is paused does not count.
//   - The outputs on the end of a step are those that its node has reported, whatever the command says; they are stored before anything that waits
//     for it begins.
//   - Of a rollout that is final no more is kept than others need: what it carried, what it takes back, and steps that are pending.
package rollout
