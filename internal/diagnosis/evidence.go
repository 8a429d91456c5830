package diagnosis

import (
	"time"

	"catenary/agent/desk"
	"catenary/internal/cluster"
	"catenary/internal/health"
)

// Evidence is all that was found out about a chain.
type Evidence struct {
	// Server is where the bus was looked for, and Unreached why it can't be reached; nil when it can.
	Server    string
	Unreached error
	// Denied says that it can be reached, and does not let who asks do so.
	Denied bool
	// Version is that of the program that asks.
	Version string
	// Reports are what the processes have said.
	Reports []health.Heard
	// Tail is the last event of the stream, by whoever tells; zero when nobody does.
	Tail uint64
	// Copies tell how far the copies are that people read.
	Copies []Copy
	// Nodes tell how nodes are, unless nobody could say.
	Nodes      []desk.Node
	NodesError error
	// Servers is what the servers say; nil with ServersError where none does. Both are nil where nobody has asked.
	Servers      *cluster.View
	ServersError error
	// Store is what was found in a store directory; nil when none was to be looked at.
	Store *Store
}

// Copy is how far the copy of a view's bucket is.
type Copy struct {
	View string
	// Event is the event of its newest value.
	Event uint64
	// Problem says why it can't be read.
	Problem string
}

// Store is a directory in which a server keeps what is stored.
type Store struct {
	Dir string
	// Problem says why it is none.
	Problem error
	// Free is what the disk has free, in bytes.
	Free int64
}

// Problem is something that is wrong, or a check that is as it should be.
type Problem struct {
	// About says what it is about: a process and its check, or the server, the nodes, the clocks.
	About string       `json:"about"`
	State health.State `json:"state"`
	Code  health.Code  `json:"code,omitempty"`
	// What says what is wrong, Next what to do.
	What  string    `json:"what,omitempty"`
	Next  string    `json:"next,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Diagnosis is what the evidence comes to.
type Diagnosis struct {
	State health.State `json:"state"`
	// Problems lists what is wrong, the worst first; Well lists what was looked at and is as it should be.
	Problems []Problem `json:"problems"`
	Well     []Problem `json:"well,omitempty"`
	Measures Measures  `json:"measures"`
}

// Measures are the figures that thresholds are for. What nobody tells is absent.
type Measures struct {
	// Event is the last event.
	Event uint64 `json:"event,omitempty"`
	// Behind and LagSeconds are those of the view that is furthest behind, the audit store among them.
	Behind     *uint64  `json:"behind,omitempty"`
	LagSeconds *float64 `json:"lag-seconds,omitempty"`
	// Parked counts what is parked in all views.
	Parked *int `json:"parked,omitempty"`
	// UsedShare is the used part of the fullest place, from 0 to 1.
	UsedShare *float64 `json:"used-share,omitempty"`
	// Off counts the nodes whose agent is not heard, of so many that have one.
	Off    *int `json:"off,omitempty"`
	Agents int  `json:"agents,omitempty"`
	// Pending counts the steps under way, Unsigned the events without a checkpoint.
	Pending  *int    `json:"pending,omitempty"`
	Unsigned *uint64 `json:"unsigned,omitempty"`
}
