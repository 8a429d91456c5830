package plan

import (
	"context"
	"time"

	"github.com/google/uuid"

	"catenary/chain"
	"catenary/events"
)

// NewID gives an id for a rollout that says when it was made, and that two who plan at once don't share.
func NewID(now time.Time) string {
	return now.UTC().Format("20060102-150405") + "-" + uuid.NewString()[:4]
}

// Back plans the automatic way back from a rollout that has failed: each node to what stood there before, whether that is recorded as published
// or not. It gives errors marked [ErrNothingChanged], those of [Reverted] and of [Make].
func Back(ctx context.Context, r *chain.Reader, id string, now time.Time) (Plan, error) {
	failed, err := chain.Get(ctx, r, chain.Rollouts, id)
	if err != nil {
		return Plan{}, err
	}
	q := Request{ID: NewID(now), Reverts: id, Reason: "rollout " + id + " has failed: " + failed.Value.Why, Now: now, AllowMissing: true}
	if q.Undo, q.Strategy, err = Reverted(ctx, r, id); err != nil {
		return Plan{}, err
	}
	facts, err := Read(ctx, r)
	if err != nil {
		return Plan{}, err
	}
	var before []events.Version
	for _, c := range q.Undo {
		if c.Before != nil {
			before = append(before, *c.Before)
		}
	}
	if err := facts.Lookup(ctx, r, before...); err != nil {
		return Plan{}, err
	}
	return Make(facts, q)
}
