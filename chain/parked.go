package chain

import (
	"context"
	"encoding/json"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// Parked tells from which event on nothing of what was recorded of a record is in it, because its view could not fold that event.
// It gives errors marked [es.ErrNotFound] for a record of which nothing is parked.
func Parked[T Record](ctx context.Context, r *Reader, kind Kind[T], names ...string) (project.Parked, error) {
	var parked project.Parked
	key, err := kind.Key(names...)
	if err != nil {
		return parked, err
	}
	b, err := r.bucket(ctx, kind.bucket)
	if err != nil {
		return parked, err
	}
	e, err := b.Get(ctx, project.ParkedKey(es.Ref{Aggregate: kind.aggregate, Key: key}))
	if err != nil {
		return parked, errors.Wrapf(err, "what is parked of %s %s", kind.aggregate, key)
	}
	if err := json.Unmarshal(e.Value, &parked); err != nil {
		return parked, errors.Wrapf(err, "%s: key %s at revision %d is no record of what is parked", kind.bucket, e.Key, e.Revision)
	}
	if parked.Skipped {
		return parked, errors.Mark(errors.Newf("event %d of %s %s was skipped: nothing is parked", parked.Event, kind.aggregate, key), es.ErrNotFound)
	}
	return parked, nil
}
