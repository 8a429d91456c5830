package project

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// check compares one bucket with a fresh fold, value by value.
type check struct {
	view     View
	reads    map[string]bool
	control  *Control
	bucket   Bucket
	tail     uint64 // the stream's tail that counts
	patience time.Duration

	report BucketReport
	found  findings
	// newest is what the fold gives for each key, as far as the bucket has come; at is the position of the last of them.
	// A view's state is the same bytes, so this holds little more than the keys.
	newest map[string]standing
	at     Position
	// later are the keys that first appear behind what the bucket has come to.
	later map[string]struct{}
	// beyondMending says why the bucket can't be mended in place, if that shows while it is read.
	beyondMending string
	// foremost is the value that claims the latest position.
	foremost struct {
		at       Position
		revision uint64
		key      string
	}
	digest *digester
	sealed bool // values of later events have begun: the digest is complete
	done   bool // nothing more is compared

	next func() (Entry, error, bool)
	stop func()
	held []found // read and not yet compared
	read uint64  // the last revision read
	last uint64  // the bucket's last revision when reading began
}

// standing is the newest value that the fold gives for a key.
type standing struct {
	data []byte
	meta Meta
}

// found is a message of the bucket; foreign says why it is none of ours.
type found struct {
	Entry
	foreign error
}

// pollPause is how often a bucket that is behind is looked at.
const pollPause = 50 * time.Millisecond

func newCheck(view View, control *Control, bucket Bucket, tail uint64, patience time.Duration) *check {
	return &check{
		view: view, reads: readsOf(view), control: control, bucket: bucket, tail: tail, patience: patience,
		report: BucketReport{Name: view.Name(), Bucket: nameOf(bucket, view.Name()), Differences: []Difference{}},
		newest: map[string]standing{}, later: map[string]struct{}{}, digest: newDigester(),
	}
}

func (c *check) close() {
	if c.stop != nil {
		c.stop()
		c.stop, c.next = nil, nil
	}
}

// event folds an event and compares what it gives.
func (c *check) event(ctx context.Context, it *item) error {
	if c.report.Unfolded != "" {
		return nil
	}
	values, err := fold(c.view, c.reads, c.control, it)
	if err != nil {
		c.report.Unfolded = stopAt(it.head.Sequence, it.event.Type, err).Error()
		c.done = true
		return nil
	}
	for i, v := range values {
		c.report.Values++
		want := planned{key: v.Key, data: v.Data, meta: metaOf(&it.event, c.view.Version(), i+1, len(values))}
		if err := c.expect(ctx, want); err != nil {
			return err
		}
		if !c.done {
			c.newest[v.Key], c.at = standing{data: v.Data, meta: want.meta}, want.meta.Position
		} else if _, known := c.newest[v.Key]; !known {
			c.later[v.Key] = struct{}{}
		}
	}
	return nil
}

// expect compares the next value of the fold with the next one of the bucket.
func (c *check) expect(ctx context.Context, want planned) error {
	for !c.done {
		have, ok, err := c.peek(ctx, 0, true)
		switch {
		case err != nil:
			return err
		case !ok:
			c.report.Behind = want.meta.Position.Sequence
			c.done = true
		case have.foreign != nil:
			c.differ(KindForeign, have, have.foreign.Error())
			c.take()
		case have.Meta.mends():
			c.mending(have)
			c.take()
		case have.Meta.Position.Before(want.meta.Position):
			c.differ(KindExtra, have, fmt.Sprintf("says that it is value %s, after which others stand already", have.Meta.Position))
			c.take()
		case want.meta.Position.Before(have.Meta.Position):
			out, err := c.outOfPlace(ctx, want)
			if err != nil {
				return err
			}
			if !out {
				c.missing(want)
				return nil
			}
			c.differ(KindExtra, have, fmt.Sprintf("says that it is value %s, but stands before %s", have.Meta.Position, want.meta.Position))
			c.take()
		default:
			c.same(want, have)
			c.take()
			return nil
		}
	}
	return nil
}

// outOfPlace tells a value that was put where it does not belong from one before which others are missing: after the
// first, the order goes on as expected.
func (c *check) outOfPlace(ctx context.Context, want planned) (bool, error) {
	after, ok, err := c.peek(ctx, 1, false)
	if err != nil || !ok || after.foreign != nil {
		return false, err
	}
	return !want.meta.Position.Before(after.Meta.Position), nil
}

func (c *check) same(want planned, have found) {
	changed := func(format string, args ...any) {
		c.found.add(Difference{Kind: KindChanged, Key: have.Key, Event: want.meta.Source.Sequence, Revision: have.Revision, Detail: fmt.Sprintf(format, args...)})
	}
	switch {
	case have.Key != want.key:
		c.displaced(have)
		changed("stands in the place of the value for key %s", want.key)
	case !bytes.Equal(have.Value, want.data):
		at := 0
		for at < min(len(have.Value), len(want.data)) && have.Value[at] == want.data[at] {
			at++
		}
		changed("has other bytes than the fold from byte %d on (%d bytes, the fold gives %d)", at, len(have.Value), len(want.data))
	case !have.Meta.Equal(want.meta):
		changed("has other headers than the fold: %+v, the fold gives %+v", have.Meta, want.meta)
	}
}

// finish looks at what the bucket has beyond the fold. When the whole stream was folded, only values of events that the
// store has got since may stand there.
func (c *check) finish(ctx context.Context, store es.Store, whole bool) error {
	state, err := c.bucket.State(ctx)
	if err != nil {
		return err
	}
	// Asked after the bucket was: an event is in the stream before its values are in a bucket.
	newest, err := store.Tail(ctx)
	if err != nil {
		return err
	}
	for whole && !c.done {
		have, ok, err := c.peek(ctx, 0, false)
		if err != nil {
			return err
		}
		if !ok || have.Revision > state.Last {
			break
		}
		switch {
		case have.foreign != nil:
			c.differ(KindForeign, have, have.foreign.Error())
		case have.Meta.mends() && have.Meta.Position.Sequence <= c.tail:
			c.mending(have)
		case have.Meta.Position.Sequence <= c.tail:
			c.differ(KindExtra, have, fmt.Sprintf("says that it is value %s, which the fold does not give here", have.Meta.Position))
		case have.Meta.Position.Sequence > newest:
			c.differ(KindExtra, have, fmt.Sprintf("says that it is value %s, but the stream ends at event %d: it was cut short, or is another one", have.Meta.Position, newest))
		default:
			c.sealed = true
		}
		c.take()
	}
	c.report.Keys, c.report.Revision, c.report.Digest = len(c.newest)+len(c.later), c.digest.revision, c.digest.sum()
	c.report.Differences, c.report.More = c.found.list()
	return nil
}

func (c *check) missing(want planned) {
	c.found.add(Difference{Kind: KindMissing, Key: want.key, Event: want.meta.Source.Sequence, Detail: fmt.Sprintf("value %s is not there", want.meta.Position)})
}

func (c *check) differ(kind Kind, have found, detail string) {
	c.found.add(Difference{Kind: kind, Key: have.Key, Event: have.Meta.Source.Sequence, Revision: have.Revision, Detail: detail})
}

// take leaves the first held message behind.
func (c *check) take() {
	if !c.sealed {
		c.digest.add(c.held[0].Entry)
	}
	c.held = c.held[1:]
}

// peek gives the i-th message that was not yet compared. At the bucket's end it waits for more, if it should.
func (c *check) peek(ctx context.Context, i int, wait bool) (found, bool, error) {
	for len(c.held) <= i {
		if c.next == nil {
			grown, err := c.grown(ctx, wait)
			if err != nil || !grown {
				return found{}, false, err
			}
			c.next, c.stop = iter.Pull2(c.bucket.All(ctx, c.read))
		}
		e, err, ok := c.next()
		switch {
		case !ok:
			c.close()
			if err := ctx.Err(); err != nil {
				return found{}, false, err
			}
			c.read = max(c.read, c.last) // what was not given is not there
			continue
		case err != nil && !errors.Is(err, ErrForeign):
			return found{}, false, err
		}
		c.held = append(c.held, found{Entry: e, foreign: err})
		c.read = e.Revision
		if at := e.Meta.Position; err == nil && c.foremost.at.Before(at) {
			c.foremost.at, c.foremost.revision, c.foremost.key = at, e.Revision, e.Key
		}
	}
	return c.held[i], true, nil
}

// grown says whether the bucket has more than was read. If it should wait, it gives up only when the bucket has not moved
// for as long as the patience lasts.
func (c *check) grown(ctx context.Context, wait bool) (bool, error) {
	patience := time.NewTimer(c.patience)
	defer patience.Stop()
	for {
		state, err := c.bucket.State(ctx)
		switch {
		case err != nil:
			return false, err
		case state.Last > c.read:
			c.last = state.Last
			return true, nil
		case !wait:
			return false, nil
		}
		select {
		case <-time.After(pollPause):
		case <-patience.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
