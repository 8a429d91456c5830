package proof

import "github.com/cockroachdb/errors"

// What a check can find. Each finding has its own words, and is marked with one of these.
var (
	// ErrMalformed means that something is not what it should be at all: a checkpoint, a proof, a key.
	ErrMalformed = errors.New("malformed")
	// ErrOrigin means that a checkpoint is another chain's.
	ErrOrigin = errors.New("another chain")
	// ErrKey means that none of the keys at hand has signed.
	ErrKey = errors.New("not signed by this key")
	// ErrSignature means that a signature does not fit what it stands under.
	ErrSignature = errors.New("signature does not fit")
	// ErrSize means that a number of events was changed after it was signed, or does not fit a proof.
	ErrSize = errors.New("size was changed")
	// ErrRoot means that a root was changed after it was signed.
	ErrRoot = errors.New("root was changed")
	// ErrEvent means that an event was changed, or is not the one it says it is.
	ErrEvent = errors.New("event was changed")
	// ErrShown means that a line of an export shows people something else than is stored in it.
	ErrShown = errors.New("shown is what is not stored")
	// ErrProof means that the hashes of a proof do not lead to the checkpoint.
	ErrProof = errors.New("proof does not hold")
	// ErrOlder means that a checkpoint was signed before the event was recorded, so that it can't tell anything of it.
	ErrOlder = errors.New("checkpoint is older than the event")
	// ErrShortened means that events are missing at the end of what a checkpoint has seen.
	ErrShortened = errors.New("the record was cut short")
	// ErrForked means that a checkpoint has seen other events in the same places.
	ErrForked = errors.New("the record was forked")
)

func markf(kind error, format string, args ...any) error {
	return errors.Mark(errors.Newf(format, args...), kind)
}
