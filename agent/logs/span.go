package logs

import (
	"time"

	"catenary/internal/topology"
)

const (
	// SpanBytes bounds the log of one span. More is cut, but for its end.
	SpanBytes = 32 << 20
	// EndBytes is how much of the end is kept of what is cut.
	EndBytes = topology.LogPartBytes
	// WaitingBytes bounds what an agent holds while the bus is away.
	WaitingBytes = 8 << 20
)

// Span is one try of one deed.
type Span struct {
	Node    string `json:"node"`
	Module  string `json:"module"`
	Rollout string `json:"rollout,omitempty"`
	// Source is the event that told the node to do it.
	Source  uint64 `json:"source,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Deed    string `json:"deed,omitempty"`
}

// Part is a part of the log of a span.
type Part struct {
	Span
	// ID tells the span from every other, also from one of the same name of an agent that has lost its state.
	ID string `json:"id"`
	// Number counts the parts of the span, from 1.
	Number int `json:"number"`
	// Cut is how many bytes were left out before this part.
	Cut int64 `json:"cut,omitempty"`
	// Last says that nothing follows.
	Last bool   `json:"last,omitempty"`
	Text string `json:"text,omitempty"`
	// Sequence is its place among all logs, At when it came.
	Sequence uint64    `json:"sequence,omitempty"`
	At       time.Time `json:"at,omitzero"`
}
