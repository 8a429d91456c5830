package audit

import "time"

// Which refused commands a log shows beside the events.
const (
	// RefusedWith shows both, newest first by the time they were recorded.
	RefusedWith = "with"
	// RefusedOnly shows refused commands alone.
	RefusedOnly = "only"
)

// Refused is a command that was not done. It stands in a stream of its own, never among the events.
type Refused struct {
	// Sequence is its place in the stream of refused commands.
	Sequence uint64    `json:"sequence"`
	Recorded time.Time `json:"recorded"`
	Command  string    `json:"command,omitempty"`
	// Digest is the SHA-256 of the command's body, in hex.
	Digest     string `json:"digest,omitempty"`
	Aggregate  string `json:"aggregate,omitempty"`
	Key        string `json:"key,omitempty"`
	Verb       string `json:"verb,omitempty"`
	Actor      string `json:"actor,omitempty"`
	OnBehalfOf string `json:"on-behalf-of,omitempty"`
	// Status, Code, Message and Hint are what the sender was answered.
	Status      string `json:"status"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`
	Hint        string `json:"hint,omitempty"`
	Causation   string `json:"causation,omitempty"`
	Correlation string `json:"correlation,omitempty"`
}
