package dispatch

import (
	"context"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// pacedEvents is how many events are folded before whoever is in no hurry may pause.
const pacedEvents = 256

// replay folds all that stands after the head. Reading, checking and decoding go ahead of applying, in so many goroutines as
// there are workers; pace is called now and then. It gives errors marked [es.ErrBrokenChain], [es.ErrUnknownType], [es.ErrUndecodable] or
// [es.ErrMalformed], those of the store, and those of the model.
func (f *fold) replay(ctx context.Context, c Config, workers int, pace func() error) error {
	f.memory.forget(c.Now())
	n := 0
	for v, err := range es.Ahead(ctx, c.Registry, c.Store, f.head, workers) {
		if err != nil {
			return errors.Wrapf(err, "read the stream after event %d", f.head.Sequence)
		}
		if err := f.take(v); err != nil {
			return err
		}
		if n++; n%pacedEvents != 0 {
			continue
		}
		if err := pace(); err != nil {
			return errors.Wrap(err, "read the stream")
		}
	}
	return nil
}

// take folds the next event.
func (f *fold) take(v es.Verified) error {
	if v.Err != nil {
		return errors.Wrap(v.Err, "the writer can't decide on a world it does not understand")
	}
	if err := f.model.Apply(v.Event); err != nil {
		return errors.Wrapf(err, "apply event %d", v.Event.Sequence)
	}
	f.memory.extend(v.Event.Command.Ref, v.Event.Command.ID, v.Event.Sequence)
	f.head = v.Head
	return nil
}
