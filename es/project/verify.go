package project

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// DefaultPatience is how long a verification waits for a bucket that is behind and does not move.
const DefaultPatience = 10 * time.Second

// Verification says what [Verify] is to check. Store, Registry, NewViews and Bucket must be given.
type Verification struct {
	Store    es.Store
	Registry *es.Registry
	// NewViews makes the views without any state.
	NewViews func() []View
	// Bucket gives the bucket of a view by its name.
	Bucket func(name string) (Bucket, error)
	// Orders says where people's decisions about views are: a fresh fold leaves out what they have skipped. Nil means none.
	Orders *Orders
	// Patience is how long to wait for a bucket that is behind and does not move. Zero means DefaultPatience.
	Patience time.Duration
}

// Verify folds the whole stream afresh, verifying its hash chain from the first event, and compares every bucket with it,
// value by value in order: key, bytes, source and all else that is kept beside a value. Both are read side by side, so
// that no more than the views' own state is held.
//
// Projectors may go on meanwhile: what counts is the stream's tail at the time of the call, and values of later events are
// no differences, as long as the stream has those events. A bucket that is behind is waited for, as long as it moves.
//
// What it finds is in the report and no error. It gives errors marked [es.ErrBrokenChain] where the stream lacks its end, so that it can't be read to there,
// and [es.ErrUnavailable], and the context's.
func Verify(ctx context.Context, v Verification) (Report, error) {
	if v.Patience <= 0 {
		v.Patience = DefaultPatience
	}
	tail, err := v.Store.Tail(ctx)
	if err != nil {
		return Report{}, errors.Wrap(err, "verify")
	}
	var checks []*check
	for _, view := range v.NewViews() {
		bucket, err := v.Bucket(view.Name())
		if err != nil {
			return Report{}, errors.Wrapf(err, "verify: bucket of view %s", view.Name())
		}
		control, err := ReadControl(ctx, v.Store, v.Registry, v.Orders, view.Name())
		if err != nil {
			return Report{}, errors.Wrap(err, "verify")
		}
		c := newCheck(view, control, bucket, tail, v.Patience)
		defer c.close()
		checks = append(checks, c)
	}
	var report Report
	if err := verifyStream(ctx, v, tail, checks, &report); err != nil {
		return Report{}, errors.Wrapf(err, "verify after event %d", report.Events)
	}
	for _, c := range checks {
		if err := c.finish(ctx, v.Store, report.Chain == ""); err != nil {
			return Report{}, errors.Wrapf(err, "verify bucket %s", c.report.Name)
		}
		report.Buckets = append(report.Buckets, c.report)
	}
	return report, nil
}

func verifyStream(ctx context.Context, v Verification, tail uint64, checks []*check, report *Report) error {
	if tail == 0 {
		return nil
	}
	// A read would wait for an end that is lost.
	if _, err := es.HeadAt(ctx, v.Store, tail); errors.Is(err, es.ErrNotFound) {
		return err
	}
	var head es.Head
	for next, err := range es.Ahead(ctx, v.Registry, v.Store, head, aheadWorkers) {
		switch {
		case errors.Is(err, es.ErrBrokenChain):
			report.Chain = err.Error()
			return nil
		case err != nil:
			return err
		}
		head = next.Head
		report.Events, report.Head = head.Sequence, head
		it := itemOf(next)
		for _, c := range checks {
			if err := c.event(ctx, it); err != nil {
				return errors.Wrapf(err, "bucket %s", c.report.Name)
			}
		}
		if head.Sequence >= tail {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	report.Chain = errors.Newf("event %d is missing: the stream ends at event %d", head.Sequence+1, tail).Error()
	return nil
}
