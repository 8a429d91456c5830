package es

import (
	"time"
)

// Command is an intent, addressed to one aggregate instance, as a decider sees it.
type Command struct {
	// ID makes the command's repeats recognisable: (Ref, ID) is its identity.
	ID string
	// Ref is the instance the command is addressed to.
	Ref Ref
	// Verb is what is to be done, in the imperative.
	Verb string
	// Data is the decoded payload, of a type of the commands package.
	Data any
	// Digest is the SHA-256 of the payload as canonically encoded, in hex.
	Digest string
	// Actor and OnBehalfOf are opaque ids of the actor directory.
	Actor, OnBehalfOf string
	// Received is the writer's clock when the command was decided; it becomes the events' recorded time.
	Received time.Time
	// Effective is when the fact became true. Zero means Received.
	Effective time.Time
	// Backfill asks that the command only adds to history.
	Backfill bool
	// Expected is the version of the instance that the sender decided on. Nil means any.
	Expected *uint64
	// Deadline is the time after which the command MUST NOT be done. Zero means none.
	Deadline time.Time
	// Fence is the lease the sender acts under: the sequence of its lease.taken event. Zero means none.
	Fence uint64
	// Causation is the id of the message that led to the command, Correlation that of the whole conversation.
	Causation, Correlation string
	// Trace is the W3C traceparent.
	Trace string
}

// At is when the command's facts became true.
func (c Command) At() time.Time {
	if c.Effective.IsZero() {
		return c.Received
	}
	return c.Effective
}

// Payload is the shape of an intent: which instance it is addressed to, what it asks, and whether it is well formed.
type Payload interface {
	// Ref is the instance the command is addressed to.
	Ref() Ref
	// Verb is what is to be done.
	Verb() string
	// Validate checks the shape alone, never the state. It gives errors that name the field, the rule and what to do.
	Validate() error
}

// Status is the kind of an answer to a command.
type Status string

// The statuses of an answer.
const (
	// StatusAccepted means the command's events are durable in the stream.
	StatusAccepted Status = "accepted"
	// StatusUnchanged means that all the command asks for is so already; nothing was recorded.
	StatusUnchanged Status = "unchanged"
	// StatusRejected means that a rule of the domain refuses the command as things stand.
	StatusRejected Status = "rejected"
	// StatusConflict means that the instance has another version than the sender expected.
	StatusConflict Status = "conflict"
	// StatusExpired means that the deadline has passed, or that the id is too old to tell whether it was done.
	StatusExpired Status = "expired"
	// StatusInvalid means that the command is malformed, whatever the state.
	StatusInvalid Status = "invalid"
	// StatusBusy means that the queue is full; nothing was done; try again later.
	StatusBusy Status = "busy"
	// StatusDenied means that the sender may not do this.
	StatusDenied Status = "denied"
	// StatusFenced means that the lease the sender acts under is another's by now.
	StatusFenced Status = "fenced"
	// StatusUnknown means that the command may or may not have been done; send it again with the same id to learn which.
	StatusUnknown Status = "unknown"
	// StatusStored means that the inbox has the command durably. What becomes of it is told by its receipt.
	StatusStored Status = "stored"
	// StatusParked means that a command of the inbox could not be read or decided. It waits for a person to retry or discard it.
	StatusParked Status = "parked"
	// StatusDiscarded means that a person has discarded a parked command. It was not done.
	StatusDiscarded Status = "discarded"
)

// Answer is what the sender of a command gets back.
type Answer struct {
	Status    Status `json:"status"`
	Command   string `json:"command,omitempty"`
	Aggregate string `json:"aggregate,omitempty"`
	Key       string `json:"key,omitempty"`
	// Version is the instance's version after the command; with a conflict, the present one.
	Version uint64 `json:"version,omitempty"`
	// Sequence is the stream sequence of the command's last event.
	Sequence uint64 `json:"sequence,omitempty"`
	// Events are the command's events, in order.
	Events []AnswerEvent `json:"events,omitempty"`
	Error  *AnswerError  `json:"error,omitempty"`
	// Repeated says that this is the first answer to a command that was sent again. It travels as a header.
	Repeated bool `json:"-"`
}

// AnswerEvent names one event that a command led to.
type AnswerEvent struct {
	Sequence  uint64 `json:"sequence"`
	Type      string `json:"type"`
	Aggregate string `json:"aggregate"`
	Key       string `json:"key"`
	Version   uint64 `json:"version"`
}

// AnswerError says why a command was not done, and what the sender can do.
type AnswerError struct {
	// Code is stable and meant for programs, such as module-stands.
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Expected and Current are the versions of a conflict.
	Expected *uint64 `json:"expected,omitempty"`
	Current  *uint64 `json:"current,omitempty"`
	// RetryAfterMillis is how many milliseconds to wait before sending the same command again. Zero means that waiting does
	// not help.
	RetryAfterMillis int64 `json:"retry-after-ms,omitempty"`
}

// Refusal is the error by which a decider refuses a command. It is the whole answer: nothing is recorded.
type Refusal struct {
	Status  Status
	Code    string
	Message string
	Hint    string
	// RetryAfter is how long to wait before sending the same command again. Zero means that waiting does not help.
	RetryAfter time.Duration
}

func (r *Refusal) Error() string {
	s := string(r.Status) + " (" + r.Code + "): " + r.Message
	if r.Hint != "" {
		s += " — " + r.Hint
	}
	return s
}

// Refuse gives the refusal of a domain rule. Code is stable; the message names the objects; the hint says what to do.
func Refuse(code, message, hint string) *Refusal {
	return &Refusal{Status: StatusRejected, Code: code, Message: message, Hint: hint}
}

// Decider is a model of the world that commands are decided on. All of it is pure: no context, no clock, no I/O; what it
// gives depends on the events applied so far and on the command alone.
type Decider interface {
	// Decide gives the events the command leads to. No events and no error means that all is so already. It gives a
	// [Refusal] when a rule refuses; any other error is a fault of the program.
	Decide(Command) ([]KeyedEvent, error)
	// Apply folds a recorded event. It gives errors for an event it can't fold; the model is then of no further use.
	Apply(Event) error
	// Note tells the model of a command decided without events; what it keeps of it is lost on restart (lease renewals).
	Note(Command)
	// Version is the number of events of the instance.
	Version(Ref) uint64
	// Fenced says whether the lease that starts at the given event sequence is no longer the present one.
	Fenced(fence uint64) bool
	// Mark gives a point to go back to. Marks nest like a stack.
	Mark() Mark
	// Rollback undoes all that was applied since the mark.
	Rollback(Mark)
	// Release forgets the marks up to and including this one: what was applied before it can't be undone any more.
	Release(Mark)
}

// Mark is a point in a model's history of applied events.
type Mark int
