// Package module decides about modules: what can be built and run, and what each requires.
//
// It owns the rules for registering, changing and forgetting. It leaves to others where a module stands (assignment).
//
// Invariants: a module that stands on a node is not forgotten. A forgotten one can be registered again. What a change of
// requires means for nodes shows at the next assign; nothing is pulled in or ended by the change itself.
package module
