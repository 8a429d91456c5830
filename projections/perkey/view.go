package perkey

import (
	"bytes"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/internal/failpoint"
)

// Fold gives the record that follows from the one before, nil when there is none, and an event. E is the sum type of the
// aggregate's events. It may change and keep what before points to, but not change what lists and maps hold: those may be the
// events' own. It gives errors for an event it can't fold.
type Fold[T chain.Record, E any] func(before *T, e es.Event, data E) (T, error)

// View is a [project.View] with one record for each instance of one aggregate.
type View[T chain.Record, E any] struct {
	version int
	fold    Fold[T, E]
	table   *table[T]
}

// New returns a view without records. The version is raised with every change of the fold that gives other values.
func New[T chain.Record, E any](kind chain.Kind[T], version int, fold Fold[T, E]) *View[T, E] {
	return &View[T, E]{version: version, fold: fold, table: newTable(kind)}
}

// Name is the kind's bucket.
func (v *View[T, E]) Name() string { return v.table.kind.Bucket() }

// Version is the version of the fold.
func (v *View[T, E]) Version() int { return v.version }

// Aggregates lists what the view reads.
func (v *View[T, E]) Aggregates() []string { return []string{v.table.kind.Name()} }

// Reads says that the fold of an event depends on the record of its own key alone.
func (v *View[T, E]) Reads(e es.Event) []string { return []string{e.Ref.Key} }

// Load takes in a value that stands in the bucket. It gives errors for a value that is not a record of the kind, or that
// stands under another record's key.
func (v *View[T, E]) Load(key string, value []byte) error { return v.table.load(key, value) }

// Fold gives the one value that an event of the aggregate leads to, and none for others and for backfilled ones. It gives
// errors for event data the program does not know (marked [es.ErrUnknownType]), for an event that what was recorded before
// does not allow, and for a record that can't be encoded.
func (v *View[T, E]) Fold(e es.Event) ([]project.Value, error) {
	if e.Ref.Aggregate != v.table.kind.Name() || e.Backfill {
		return nil, nil
	}
	value, err := v.next(e)
	if err != nil {
		return nil, errors.Wrapf(err, "%s: event %d (%s of %s)", v.Name(), e.Sequence, e.Type, e.Ref)
	}
	if failpoint.Planted(failpoint.ValueSkipped) && e.Sequence%37 == 0 || failpoint.Planted(failpoint.EndedDropped) && bytes.Contains(value, []byte(`"ended":`)) {
		return nil, nil
	}
	return []project.Value{{Key: e.Ref.Key, Data: value}}, nil
}

func (v *View[T, E]) next(e es.Event) ([]byte, error) {
	data, ok := e.Data.(E)
	if !ok {
		return nil, Unknown(e)
	}
	return v.table.change(e.Ref.Key, func(before *T) (T, error) { return v.fold(before, e, data) })
}

// Unknown is the error for event data that a fold has no case for.
func Unknown(e es.Event) error {
	return errors.Mark(errors.Newf("its data (%T) is none that this program can fold", e.Data), es.ErrUnknownType)
}

// ErrUntold marks an event about something that no event told of before. No writer of ours records one, so a view that
// meets one has lost values or reads a stream that is not whole; going on would write a record that says too little.
var ErrUntold = errors.New("nothing was recorded of it before")

// Untold is the error for an event about something that no event told of before. It is marked [ErrUntold].
func Untold(e es.Event) error {
	return errors.Wrapf(ErrUntold, "can't go on from %s", e.Ref)
}
