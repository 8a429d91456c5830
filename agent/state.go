package agent

import (
	"maps"
	"slices"

	"catenary/events"
)

// State is all that an agent knows: what it was told, what it has brought about, and what it still has to say of that. It changes by
// its methods alone, none of which does anything else.
type State struct {
	Node string `json:"node"`
	// Run names the run of the agent that says what is said now: it is part of the ids of its reports.
	Run string `json:"run"`
	// Edition is what is known of the chain, as the desk names it.
	Edition string `json:"edition,omitempty"`
	// Held says why nothing may be done on the node at all.
	Held string `json:"held,omitempty"`
	// Modules are those that the node was ever told of.
	Modules map[string]Module `json:"modules,omitempty"`
	// Doing is what was begun and has no outcome.
	Doing *Doing `json:"doing,omitempty"`
	// Reports have not been handed on.
	Reports []Report `json:"reports,omitempty"`
	// Said counts the reports of the run.
	Said uint64 `json:"said,omitempty"`
	// Stale counts the instructions that were refused because a later one is known, and names the last.
	Stale     uint64     `json:"stale,omitempty"`
	LastStale *StaleTold `json:"last-stale,omitempty"`
}

// StaleTold is an instruction that came after a later one.
type StaleTold struct {
	Module string `json:"module"`
	Source uint64 `json:"source"`
	Known  uint64 `json:"known"`
}

// Module is what is known of a module.
type Module struct {
	// Told is the latest instruction.
	Told Instruction `json:"told"`
	// Settled is the source of the instruction that there is nothing more to do about.
	Settled uint64 `json:"settled,omitempty"`
	// Attempts counts the tries of the instruction, and Failure says why the last one failed.
	Attempts int    `json:"attempts,omitempty"`
	Failure  string `json:"failure,omitempty"`
	// Touched says that something was begun on the node since nothing of the module was there: there may be some of it, whatever came
	// of that.
	Touched bool `json:"touched,omitempty"`
	// Applied is what the node was brought to; nil when it was brought to nothing.
	Applied *Applied `json:"applied,omitempty"`
	// Health is what was found last of what is applied: a verdict, or nothing yet.
	Health Verdict `json:"health,omitempty"`
	// Drift is what was found instead of what is applied.
	Drift string `json:"drift,omitempty"`
}

// Applied is what a node was brought to.
type Applied struct {
	Instruction Instruction `json:"instruction"`
	// Driver is what has brought it there, and takes it away.
	Driver  events.Driver     `json:"driver"`
	Outputs map[string]string `json:"outputs,omitempty"`
}

// Verdict is what checks have found.
type Verdict string

// What checks find.
const (
	Healthy   Verdict = "healthy"
	Unhealthy Verdict = "unhealthy"
)

// Deed is something that an agent does.
type Deed string

// What an agent does.
const (
	Apply  Deed = "apply"
	Remove Deed = "remove"
)

// Doing is a deed that has begun.
type Doing struct {
	Deed        Deed        `json:"deed"`
	Instruction Instruction `json:"instruction"`
	Attempt     int         `json:"attempt"`
}

// NewState is the state of an agent that knows nothing.
func NewState(node string) State {
	return State{Node: node, Modules: map[string]Module{}}
}

// begin begins a run of the agent, by a name that no other has. What was not handed on before keeps its ids, and all is learned anew: what
// was said while the agent was away may be missing.
func (s *State) begin(run string) {
	s.Run, s.Said, s.Edition = run, 0, ""
}

// names gives the modules in order.
func (s *State) names() []string { return slices.Sorted(maps.Keys(s.Modules)) }

// open says whether there is something to do about a module.
func (m Module) open() bool { return m.Settled != m.Told.Source }

// Converged says that all that was told is so, that nothing failed, and that all of it was handed on.
func (s *State) Converged() bool {
	if s.Doing != nil || len(s.Reports) > 0 || s.Held != "" {
		return false
	}
	for _, m := range s.Modules {
		if m.open() || m.Failure != "" || m.Drift != "" || m.Health == Unhealthy {
			return false
		}
	}
	return true
}
