package dispatch

import (
	"context"
	"time"

	"catenary/es"
)

// Names of a command's headers on the bus.
const (
	HeaderCommand     = es.HeaderCommand
	HeaderExpected    = "Cat-Expected-Version"
	HeaderEffective   = es.HeaderEffective
	HeaderBackfill    = es.HeaderBackfill
	HeaderDeadline    = "Cat-Deadline"
	HeaderFence       = "Cat-Fence"
	HeaderOnBehalfOf  = es.HeaderOnBehalfOf
	HeaderCausation   = es.HeaderCausation
	HeaderCorrelation = es.HeaderCorrelation
	HeaderTrace       = es.HeaderTrace
	HeaderContentType = "Content-Type"
	// HeaderActor names who acts, on calls from inside the ledger's own account only.
	HeaderActor = es.HeaderActor
	// HeaderRepeated marks an answer that was given before.
	HeaderRepeated = "Cat-Repeated"
)

// Content types of command bodies.
const (
	ContentTypeJSON    = "application/json"
	ContentTypeMsgpack = es.ContentTypeMsgpack
)

// Request is a command on its way to a writer.
type Request struct {
	Aggregate, Verb string
	// Body is the payload, JSON unless ContentType says otherwise.
	Body        []byte
	ContentType string
	Options
}

// Options are what may be said of a single command. The zero value says nothing.
type Options struct {
	// ID makes repeats recognisable. Empty lets the bus client choose a new UUIDv7, kept over its own retries.
	ID string
	// Expected is the version of the instance that the sender decided on.
	Expected *uint64
	// Effective is when the fact became true.
	Effective time.Time
	// Backfill asks that the command only adds to history.
	Backfill bool
	// Deadline is the time after which the command must not be done.
	Deadline time.Time
	// Fence is the lease the sender acts under.
	Fence uint64
	// OnBehalfOf names a person or system the sender acts for.
	OnBehalfOf string
	// Causation and Correlation tie the command to what led to it.
	Causation, Correlation string
	// Trace is the W3C traceparent.
	Trace string
}

// Bus carries requests to a writer.
type Bus interface {
	// Send returns the answer, whatever its status: the writer's, or one that says that the command is stored. It gives errors marked [ErrNoWriter], [ErrTimeout],
	// [ErrDenied], [ErrTooLarge] or es.ErrUnavailable when no answer came. It MAY be called by many goroutines at once.
	Send(ctx context.Context, r Request) (es.Answer, error)
}
