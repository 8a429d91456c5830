package es

import (
	"context"
	"iter"

	"github.com/cockroachdb/errors"
)

// What an append or a read can come to. Stores mark their errors with one of these.
var (
	// ErrConflict means that the stream's last sequence was not the expected one. Nothing of the append is stored, unless an
	// earlier try of the very same append was: [Settle] tells.
	ErrConflict = errors.New("the stream has gone on")
	// ErrUnclear means that no answer came: the append may be stored now, later or never. [Settle] finds out.
	ErrUnclear = errors.New("no answer to the append")
	// ErrTooLarge means that a message is over the limit, which the error names. Nothing is stored.
	ErrTooLarge = errors.New("message too large")
	// ErrFull means that the store has reached its limit. Nothing is stored; raise the limit or make room.
	ErrFull = errors.New("store full")
	// ErrUnavailable means that the store can't be reached, has no leader now or can't take more at once. Of an append
	// nothing is stored; it may be tried again.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNotFound means that there is no such message.
	ErrNotFound = errors.New("no such message")
)

// MaxAppendMessages bounds one append: the server takes at most this many messages in an atomic batch.
const MaxAppendMessages = 1000

// CheckAppend says whether a store can take an append at all: it is not empty, and neither the number of its messages nor
// one of their subjects is over the limit. Every store checks this before anything is sent. It gives errors marked
// [ErrTooLarge], and an unmarked one for an append of nothing, which is a mistake in the program.
func CheckAppend(batch []Message) error {
	if len(batch) == 0 {
		return errors.AssertionFailedf("append of no messages")
	}
	if len(batch) > MaxAppendMessages {
		return errors.Mark(errors.Newf("append of %d events: the limit is %d in one append; ask for less at once", len(batch), MaxAppendMessages), ErrTooLarge)
	}
	for _, m := range batch {
		if len(m.Subject) > MaxSubjectBytes {
			return errors.Mark(errors.Newf("append to %.40s…: the subject has %d bytes, the limit is %d; use shorter names", m.Subject, len(m.Subject), MaxSubjectBytes), ErrTooLarge)
		}
	}
	return nil
}

// Store keeps the stream of events.
//
// Read errors are marked [ErrUnavailable]; iterators end after the first error. A store MUST give messages in the order of
// their sequence and MUST read its tail where appends are ordered (the leader), never from a lagging copy.
type Store interface {
	// Append hands messages to the store, to stand directly after the sequence `after`, and returns at once. Appends of one
	// caller reach the store in the order of the calls, so that a next one may be handed over, expecting this one's last
	// sequence, before this one is answered. All of an append's messages are stored, or none. It is durable, as
	// the store's durability says, when Pending is done without error.
	//
	// The guard counts, it does not know who stands at `after`: when a rival's append of the same length takes the place of
	// one in the middle of a pipeline, the next one of the pipeline fits again, on top of what it was not made for. So who
	// may have rivals MUST have only one append in flight, after a head it knows to stand.
	//
	// Pending gives errors marked ErrConflict, ErrUnclear, ErrTooLarge, ErrFull or ErrUnavailable.
	Append(ctx context.Context, after uint64, batch []Message) Pending
	// Tail gives the stream's last sequence, 0 when it is empty.
	Tail(ctx context.Context) (uint64, error)
	// Get gives the message at a sequence; errors are marked ErrNotFound or ErrUnavailable.
	Get(ctx context.Context, sequence uint64) (Message, error)
	// Read gives all messages after a sequence, up to the tail at the time of the call.
	Read(ctx context.Context, after uint64) iter.Seq2[Message, error]
	// ReadAggregate gives the messages of one aggregate instance, up to the tail at the time of the call.
	ReadAggregate(ctx context.Context, ref Ref) iter.Seq2[Message, error]
	// Follow gives all messages after a sequence and waits for new ones until the context ends, which is its only end
	// without an error.
	Follow(ctx context.Context, after uint64) iter.Seq2[Message, error]
}

// Pending is an append on its way.
type Pending interface {
	// Done is closed when the outcome is known.
	Done() <-chan struct{}
	// Err gives the outcome after Done; nil means stored.
	Err() error
}

// Wait waits for an append's outcome. When the context ends first the outcome is unclear.
func Wait(ctx context.Context, p Pending) error {
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return errors.Mark(errors.Wrap(ctx.Err(), "waiting for the append"), ErrUnclear)
	}
}
