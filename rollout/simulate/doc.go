// Package simulate lets rollouts run for months in a moment, from a seed.
//
// It owns a clock of its own, a bus that loses, repeats and delays, nodes that fail, lie, vanish and come back, people who do what people do, two
// engines that crash and hang, and a writer that ends and goes on. What it runs is real: the writer's deciders on a real world, the engine's
// reducer and scheduler, and the planner. It leaves to rollout/simulate/check what has to be so.
//
// A run has three parts. First everything goes wrong that can. Then the faults stop, and nobody helps: whatever does not end by itself has to say
// why. Then people take away what stands in the way, and everything has to end.
//
// Invariants: one goroutine, no clock and no chance but those of the seed: the same [Config] gives the same history, byte for byte. What is done to
// a run is a list of incidents, so a run that fails can be made smaller ([Shrink]).
package simulate
