package events

import (
	"maps"
	"slices"
)

// Assignment is a fact about a module on a node: what the node was told, or what it reported.
//
//sumtype:decl
type Assignment interface{ isAssignment() }

// Told is what a node is told to run.
type Told struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	Reference
	Build  string `json:"build,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Rollout is the rollout that put it there.
	Rollout string `json:"rollout,omitempty"`
	// RequiredBy names the modules that pulled it in. It is empty for what was assigned for its own sake.
	RequiredBy []string `json:"required-by,omitempty"`
	// Provisioning is JSON kept byte for byte.
	Provisioning Raw `json:"provisioning,omitempty"`
	// Inputs are what others have handed on to it, by node and module.
	Inputs []Handed `json:"inputs,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// Handed is what one module on a node hands on to another: the outputs that were last reported of it.
type Handed struct {
	StepName
	Values map[string]string `json:"values,omitempty"`
	// Changed names, in order, the values that are new, others than those handed last, or gone. A value counts as changed until the node has
	// brought about what it was told with it.
	Changed []string `json:"changed,omitempty"`
}

// SameInputs says whether two lists hand on the same values. What of them has changed is no part of it.
func SameInputs(a, b []Handed) bool {
	return slices.EqualFunc(a, b, func(a, b Handed) bool { return a.StepName == b.StepName && maps.Equal(a.Values, b.Values) })
}

// AssignmentAssigned says that a node was told to run a module.
type AssignmentAssigned struct{ Told }

// AssignmentEnded says that a node was told to run a module no more.
type AssignmentEnded struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	// Rollout is the rollout that ended it.
	Rollout string `json:"rollout,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// AssignmentMovedIn says that a module came over from another node, as it stood there.
type AssignmentMovedIn struct {
	Told
	From string `json:"from"`
}

// AssignmentMovedOut says that a module went over to another node.
type AssignmentMovedOut struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	To     string `json:"to"`
	Reason string `json:"reason,omitempty"`
}

// StatePending marks an assignment that waits and does not stand.
const StatePending = "pending"

// AssignmentPended says that a module is meant for a node but not told yet.
type AssignmentPended struct {
	Told
	State string `json:"state"`
}

// Seen is what a node reports to run.
type Seen struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	Reference
	Build   string `json:"build,omitempty"`
	Rollout string `json:"rollout,omitempty"`
	// Source is the sequence of the event whose instruction the node acted on.
	Source uint64 `json:"source,omitempty"`
	// Outputs are values for whatever waits for the module.
	Outputs map[string]string `json:"outputs,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	// Driver is what has brought the module to the node, or was to.
	Driver *Driver `json:"driver,omitempty"`
}

// AssignmentApplied says that a node reports to run what it was told.
type AssignmentApplied struct{ Seen }

// AssignmentApplyFailed says that a node could not do what it was told.
type AssignmentApplyFailed struct{ Seen }

// AssignmentHealthy says that a node found the module healthy.
type AssignmentHealthy struct{ Seen }

// AssignmentUnhealthy says that a node found the module unhealthy.
type AssignmentUnhealthy struct{ Seen }

// AssignmentRemoved says that a node reports not to run the module any more.
type AssignmentRemoved struct{ Seen }

// AssignmentRemoveFailed says that a node could not remove the module.
type AssignmentRemoveFailed struct{ Seen }

// AssignmentDrifted says that a node found something else running than it had applied.
type AssignmentDrifted struct {
	Seen
	Drift string `json:"drift"`
}

func (AssignmentAssigned) isAssignment()     {}
func (AssignmentEnded) isAssignment()        {}
func (AssignmentMovedIn) isAssignment()      {}
func (AssignmentMovedOut) isAssignment()     {}
func (AssignmentPended) isAssignment()       {}
func (AssignmentApplied) isAssignment()      {}
func (AssignmentApplyFailed) isAssignment()  {}
func (AssignmentHealthy) isAssignment()      {}
func (AssignmentUnhealthy) isAssignment()    {}
func (AssignmentRemoved) isAssignment()      {}
func (AssignmentRemoveFailed) isAssignment() {}
func (AssignmentDrifted) isAssignment()      {}
