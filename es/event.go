package es

import (
	"time"
)

// Event is one fact, recorded once and never changed.
type Event struct {
	// Sequence is the event's place in the stream, from 1. It is zero until the event is stored.
	Sequence uint64
	// ID is unique to the event. It is new for every decision, so it tells one attempt to record from another.
	ID string
	// Type is the stored name with its version, such as assignment.assigned.v1.
	Type string
	// Ref is the aggregate instance the event belongs to.
	Ref Ref
	// Version counts the instance's events, from 1.
	Version uint64
	// Recorded is the writer's clock when it decided.
	Recorded time.Time
	// Effective is when the fact became true: given by who reported it, else Recorded.
	Effective time.Time
	// Backfill marks an event that adds to history and never changes what stands.
	Backfill bool
	// Command is what the event came from.
	Command Cause
	// Hash covers the event as stored and, through its predecessor's hash, everything before it.
	Hash Hash
	// Data is the decoded body, of a type the registry knows. It is nil when the type is unknown.
	Data any
	// Body is the body as stored, never upcast.
	Body []byte
}

// Cause tells which command an event came from, and who sent it.
type Cause struct {
	// ID is the command's id.
	ID string
	// Ref is the instance the command was addressed to; it may differ from the event's own.
	Ref Ref
	// Digest is the SHA-256 of the command's body in hex: the same id with another body is not the same command.
	Digest string
	// Actor and OnBehalfOf are opaque ids of the actor directory.
	Actor, OnBehalfOf string
	// Causation is the id of the message that led to the command, Correlation that of the whole conversation.
	Causation, Correlation string
	// Trace is the W3C traceparent.
	Trace string
}

// KeyedEvent is what a decider gives: a fact for one aggregate instance, not yet recorded.
type KeyedEvent struct {
	Ref  Ref
	Data any
	// Backfill is set when the fact only adds to the instance's history.
	Backfill bool
	// Effective is when the fact became true, where the command did not say and it is not the command's own time.
	Effective time.Time
}

// At is when the fact became true, for the command it was decided on.
func (k KeyedEvent) At(c Command) time.Time {
	if k.Effective.IsZero() {
		return c.At()
	}
	return k.Effective
}

// Message is an event in the form it is stored in, which is also what its hash covers.
type Message struct {
	// Sequence is the place in the stream; zero until stored.
	Sequence uint64
	Subject  string
	Header   map[string][]string
	Body     []byte
}

// Size is what the message counts against limits: subject, headers and body, in bytes.
func (m Message) Size() int {
	n := len(m.Subject) + len(m.Body)
	for k, vs := range m.Header {
		for _, v := range vs {
			n += len(k) + len(v) + 4 // ": " and the line's end
		}
	}
	return n
}

// Hash gives the hash that the message was sealed with. It gives an error for one that was not.
func (m Message) Hash() (Hash, error) { return ParseHash(m.get(HeaderHash)) }

func (m Message) get(name string) string {
	if vs := m.Header[name]; len(vs) > 0 {
		return vs[0]
	}
	return ""
}
