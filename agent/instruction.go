package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"catenary/agent/driver"
	"catenary/events"
)

// Instruction is what a node is told of one module.
type Instruction struct {
	// Source is the sequence of the event that told it. It alone says which of two instructions is the later one.
	Source uint64 `json:"source"`
	Module string `json:"module"`
	// Stands says that the module shall run. What waits does not stand, and has not Ended either.
	Stands bool `json:"stands,omitempty"`
	Ended  bool `json:"ended,omitempty"`
	events.Reference
	Build   string `json:"build,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Rollout string `json:"rollout,omitempty"`
	// RequiredBy names the modules that pulled it in.
	RequiredBy []string `json:"required-by,omitempty"`
	// Record is the assignment's record, as it stands in the chain, with what the node is handed besides.
	Record json.RawMessage `json:"record,omitempty"`
	// Requires and Delivery are said of the module; they may change while the instruction stands.
	Requires []string         `json:"requires,omitempty"`
	Delivery *events.Delivery `json:"delivery,omitempty"`
	// Trace is the traceparent of what told it, where somebody traces.
	Trace string `json:"trace,omitempty"`
}

// sameWork says whether nobody has to do anything to get from one instruction to the other, although they were told apart: all that
// differs is for which modules' sake. Told just the same again, there is something to do: a step is tried again, or a refresh.
func sameWork(a, b Instruction) bool {
	return a.Stands && b.Stands && !slices.Equal(a.RequiredBy, b.RequiredBy) &&
		a.Reference.Equal(b.Reference) && a.Build == b.Build && a.Rollout == b.Rollout && sameHanded(a.handed(), b.handed())
}

// handed is what a node is handed beside what it shall run.
type handed struct {
	Provisioning events.Raw      `json:"provisioning"`
	Inputs       []events.Handed `json:"inputs"`
}

func sameHanded(a, b handed) bool {
	return bytes.Equal(a.Provisioning, b.Provisioning) && events.SameInputs(a.Inputs, b.Inputs)
}

// handed is what the node is handed besides. A record that can't be read holds nothing: whoever has sent it has read it.
func (i Instruction) handed() handed {
	var h handed
	if len(i.Record) == 0 || json.Unmarshal(i.Record, &h) != nil {
		return handed{}
	}
	return h
}

// DefaultTimeout bounds an apply where the module says nothing.
const DefaultTimeout = 10 * time.Minute

// timeout bounds bringing the instruction about.
func (i Instruction) timeout() time.Duration {
	if i.Delivery != nil {
		if d, err := time.ParseDuration(i.Delivery.Timeout); err == nil && d > 0 {
			return d
		}
	}
	return DefaultTimeout
}

// drivers names those that are tried, in order; none means all that the agent has.
func (i Instruction) drivers() []string {
	if i.Delivery == nil {
		return nil
	}
	return i.Delivery.Drivers
}

// task is the instruction as drivers get it.
func (i Instruction) task(node string, attempt int) driver.Task {
	h := i.handed()
	return driver.Task{
		Node: node, Module: i.Module, Reference: i.Reference, Build: i.Build, Commit: i.Commit, Rollout: i.Rollout,
		Source: i.Source, Attempt: attempt, Provisioning: h.Provisioning, Inputs: h.Inputs, Record: i.Record,
	}
}
