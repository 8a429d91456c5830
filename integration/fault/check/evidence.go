package check

import (
	"fmt"
	"time"

	"catenary/es"
	"catenary/es/project"
)

// Evidence is all that a run has left behind.
type Evidence struct {
	// Commands are those that senders of the run have sent, in any order.
	Commands []Command
	// Messages is the event stream as stored, Events the same decoded.
	Messages []es.Message
	Events   []es.Event
	// Buckets holds the values of each view's bucket in order, Copies those of its copy, by the view's name.
	Buckets, Copies map[string][]project.Entry
	// Views are those that make the buckets, new.
	Views []project.View
	// Nodes is what runs on nodes that have an agent.
	Nodes []Runs
	// Problems are what was found wrong by others: a checkpoint that does not agree with the stream, or a bound that was passed.
	Problems []Violation
}

// Command is one command, and what its sender was told each time it was sent.
type Command struct {
	ID   string
	Ref  es.Ref
	Verb string
	// Expected is the version of its instance that the command was decided on by its sender; nil for any.
	Expected *uint64
	Tries    []Try
}

// Try is one sending of a command. Times are those of one clock that never goes back.
type Try struct {
	Called, Returned time.Duration
	// Answer is what came; its status is empty when nothing did.
	Answer es.Answer
}

// Outcome says what an answer means for the try that it answers.
type Outcome int

// The outcomes of a try.
const (
	// Open means that the command may be done, now or later.
	Open Outcome = iota
	// Done means that it is.
	Done
	// Not means that this try did nothing, and never will.
	Not
)

// Outcome says what a try has come to.
func (t Try) Outcome() Outcome {
	switch t.Answer.Status {
	case es.StatusAccepted:
		return Done
	case es.StatusUnchanged, es.StatusRejected, es.StatusConflict, es.StatusExpired, es.StatusInvalid, es.StatusDenied, es.StatusFenced, es.StatusBusy:
		return Not
	}
	return Open
}

// Saw says whether the answer tells which version of its instance the writer has seen.
func (t Try) Saw() bool {
	switch t.Answer.Status {
	case es.StatusUnchanged, es.StatusConflict:
		return true
	case es.StatusRejected:
		return t.Answer.Version > 0
	}
	return false
}

// Runs is what a node has of a module.
type Runs struct {
	Node, Module string
	// Version is what runs; empty when nothing does.
	Version string
	// Applied are the sources of the instructions that were applied or removed, in order.
	Applied []uint64
}

// Violation is something that must not be.
type Violation struct {
	// Invariant is I1 to I8.
	Invariant string
	Text      string
}

// String gives both.
func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// findings collects violations of one invariant.
type findings struct {
	invariant string
	list      []Violation
}

// mostOfOne bounds how often one invariant is reported: a fault that breaks everything says nothing more the thousandth time.
const mostOfOne = 20

func (f *findings) say(format string, args ...any) {
	if len(f.list) < mostOfOne {
		f.list = append(f.list, Violation{Invariant: f.invariant, Text: fmt.Sprintf(format, args...)})
	}
}

// All gives what is wrong.
func All(e Evidence) []Violation {
	all := e.Problems
	for _, judge := range []func(Evidence) []Violation{Once, Ordered, Chained, Folded, Kept, Stepped, Applied} {
		all = append(all, judge(e)...)
	}
	return all
}
