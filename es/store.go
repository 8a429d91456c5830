package es

import (
	"context"
	"iter"

	"github.com/cockroachdb/errors"
)

// What an append or a read can come to. Stores mark their errors with one of these.
var (
	// ErrConflict means that the stream did not end with the event that the append was to follow. Nothing of the append is
	// stored, unless an earlier try of the very same append was: [Settle] tells.
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

// CheckAppend says whether a store can take an append at all: it is not empty, its messages are sealed, and neither their
// number nor one of their subjects is over the limit. Every store checks this before anything is sent. It returns the head
// that the append leaves, and gives errors marked [ErrTooLarge], and unmarked ones for an append of nothing or of messages
// without a hash, which are mistakes in the program.
func CheckAppend(after Head, batch []Message) (Head, error) {
	if len(batch) == 0 {
		return Head{}, errors.AssertionFailedf("append of no messages")
	}
	if len(batch) > MaxAppendMessages {
		return Head{}, errors.Mark(errors.Newf("append of %d events: the limit is %d in one append; ask for less at once", len(batch), MaxAppendMessages), ErrTooLarge)
	}
	for _, m := range batch {
		if len(m.Subject) > MaxSubjectBytes {
			return Head{}, errors.Mark(errors.Newf("append to %.40s…: the subject has %d bytes, the limit is %d; use shorter names", m.Subject, len(m.Subject), MaxSubjectBytes), ErrTooLarge)
		}
	}
	hash, err := batch[len(batch)-1].Hash()
	if err != nil {
		return Head{}, errors.NewAssertionErrorWithWrappedErrf(err, "append of a message that was not sealed")
	}
	return Head{Sequence: after.Sequence + uint64(len(batch)), Hash: hash}, nil
}

// Store keeps the stream of events.
//
// Read errors are marked [ErrUnavailable]; iterators end after the first error. A store MUST give messages in the order of
// their sequence and MUST read its tail where appends are ordered (the leader), never from a lagging copy.
type Store interface {
	// Append hands messages to the store, to stand directly after the event that the head names, by sequence AND by hash, or
	// not at all. It returns at once, or when there is room for more, and waits no longer than the context. Appends of one
	// caller reach the store in the order of the calls, so that a next one may be handed over, on the head that this one
	// leaves, before this one is answered. All of an append's messages are stored, or none. It is durable, as the store's
	// durability says, when Pending is done without error.
	//
	// The guard is exact: what stands was decided on all that stands before it, whoever else appends. So of a pipeline
	// everything after the first append that is not stored is refused too, and an append that is stored proves that all
	// before it are.
	//
	// Pending gives errors marked ErrConflict, ErrUnclear, ErrTooLarge, ErrFull or ErrUnavailable.
	Append(ctx context.Context, after Head, batch []Message) Pending
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
