package project

import (
	"context"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Losses says where the stream tells that somebody has accepted the loss of events: it ends earlier than what was derived from it, or holds
// other events. Whatever has seen those is derived anew, without anybody's further word.
type Losses struct {
	// Instance is the aggregate instance that holds what was accepted.
	Instance es.Ref
	// Read gives what an event of it accepts, and false for one that accepts nothing.
	Read func(e es.Event) (Loss, bool)
}

// Loss is what was lost, and accepted as such.
type Loss struct {
	// Found is the last event that stood.
	Found  uint64
	Reason string
	// Contradicts says whether what was accepted is that a bucket of this name, whose newest value has this place, has seen what
	// the stream lacks.
	Contradicts func(bucket string, at Position, source Source) bool
}

// accepted finds the loss that was accepted of what a view has seen, if any. It gives errors marked [es.ErrUnavailable].
func (c *Config) accepted(ctx context.Context, is func(Loss) bool) (loss Loss, event uint64, err error) {
	if c.Losses == nil {
		return Loss{}, 0, nil
	}
	for m, err := range c.Store.ReadAggregate(ctx, c.Losses.Instance) {
		if err != nil {
			return Loss{}, 0, errors.Wrap(err, "look for losses that were accepted")
		}
		e, err := c.Registry.Decode(m)
		if err != nil {
			continue // what this program can't read accepts nothing here
		}
		if l, ok := c.Losses.Read(e); ok && is(l) {
			loss, event = l, e.Sequence
		}
	}
	return loss, event, nil
}

// contradicted makes a stop of a bucket that has seen other events than the stream has: a new generation follows on one whose contradiction
// was accepted.
func (w *worker) contradicted(ctx context.Context, tail Entry, stop error) error {
	reason, err := w.cfg.acceptedLoss(ctx, w.generation.Bucket, w.name, tail)
	switch {
	case err != nil:
		return err
	case reason == "":
		return stop
	}
	return wornf("%s", reason)
}

// acceptedLoss says that it was accepted that the bucket has seen what the stream lacks; nothing when it was not.
func (c *Config) acceptedLoss(ctx context.Context, bucket, view string, tail Entry) (string, error) {
	if bucket == "" {
		bucket = view
	}
	loss, event, err := c.accepted(ctx, func(l Loss) bool { return l.Contradicts(bucket, tail.Meta.Position, tail.Meta.Source) })
	if err != nil || event == 0 {
		return "", err
	}
	return errors.Newf("the bucket %s has come to event %d, but the record was cut after event %d, which was accepted by event %d (%s)",
		bucket, tail.Meta.Position.Sequence, loss.Found, event, loss.Reason).Error(), nil
}
