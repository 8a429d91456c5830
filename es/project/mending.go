package project

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Mend is a value that is to be written again, or was, to mend a bucket in place.
type Mend struct {
	Key string `json:"key"`
	// Event is the one the value comes from.
	Event uint64 `json:"event"`
	// Replaces is the revision that is not as it should be.
	Replaces uint64 `json:"replaces"`
	// Revision is where the value was written; zero when it was not.
	Revision uint64 `json:"revision,omitempty"`
	// Detail says what was wrong.
	Detail string `json:"detail"`
}

// mending takes a mending value in. It has to be what the fold gives for its key, at the position that the bucket had.
func (c *check) mending(have found) {
	want, known := c.newest[have.Key]
	if !known || !bytes.Equal(have.Value, want.data) || have.Meta.Position != c.at ||
		!have.Meta.original(want.meta.Position).Equal(want.meta) {
		c.differ(KindExtra, have, fmt.Sprintf("says that it mends value %d, but is not what the fold gives for the key at %s", have.Meta.Replaces, c.at))
		return
	}
	c.report.Mended++
	c.found.settle(have.Key, have.Meta.Replaces)
}

// displaced notes that a value stands in another one's place. That other one can't be written into the past.
func (c *check) displaced(have found) {
	if c.beyondMending == "" {
		c.beyondMending = fmt.Sprintf("value %d (key %s) stands in another one's place, and what is past can't be written again", have.Revision, have.Key)
	}
}

// plan says what to write at the bucket's end so that it equals the fold in all that readers see. A reason beside it says
// why that is not enough: nothing is ever taken out of a bucket, nor written into its past, so such a bucket is built anew.
func (c *check) plan() (mends []Mend, reason string) {
	reason = c.beyondMending
	not := func(format string, args ...any) {
		if reason == "" {
			reason = fmt.Sprintf(format, args...)
		}
	}
	if c.at.Sequence == 0 && len(c.found.open) > 0 || c.at.Sequence > 0 && !c.at.complete() {
		not("the bucket does not end with the last value of an event, so that no mending value has a place")
	}
	if c.found.more > 0 {
		not("more than %d values differ", maxFindings)
	}
	if c.foremost.at.Sequence > 0 && c.at.Before(c.foremost.at) {
		not("value %d (key %s) says that it is value %s, which is later than all that the fold gives; positions never go back", c.foremost.revision, c.foremost.key, c.foremost.at)
	}
	for _, d := range c.found.open {
		want, known := c.newest[d.Key]
		switch {
		case d.Kind == KindMissing:
			not("the value of event %d for key %s is missing, and what is past can't be written again", d.Event, d.Key)
		case !known:
			not("the fold gives no key %s, and a key can't be taken away", d.Key)
		case d.Kind == KindChanged && d.Event != want.meta.Source.Sequence:
			not("value %d (key %s) is a past one of its key, and what is past can't be written again", d.Revision, d.Key)
		default:
			mends = append(mends, Mend{Key: d.Key, Event: want.meta.Source.Sequence, Replaces: d.Revision, Detail: string(d.Kind) + ": " + d.Detail})
		}
	}
	return mends, reason
}

// write writes the mending values after a revision, at the position that the bucket has. It gives errors as [Bucket.Put]
// does; after one, some of the values may stand.
func (c *check) write(ctx context.Context, bucket Bucket, after uint64, mends []Mend, now time.Time) error {
	pending := make([]es.Pending, len(mends))
	for i := range mends {
		m := &mends[i]
		want := c.newest[m.Key]
		meta := want.meta
		meta.Position, meta.Mended, meta.Replaces = c.at, now.UTC(), m.Replaces
		pending[i] = bucket.Put(ctx, after+uint64(i), m.Key, want.data, meta)
	}
	for i := range mends {
		if err := es.Wait(ctx, pending[i]); err != nil {
			return errors.Wrapf(err, "mend key %s", mends[i].Key)
		}
		mends[i].Revision = after + uint64(i) + 1
	}
	return nil
}
