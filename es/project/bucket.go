package project

import (
	"context"
	"iter"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// ErrForeign marks a message in a bucket that no projector wrote: it does not say which event it comes from.
var ErrForeign = errors.New("foreign message in the bucket")

// ErrNoBucket marks that a bucket does not exist.
var ErrNoBucket = errors.New("no such bucket")

// Entry is one value as it stands in a bucket.
type Entry struct {
	Key   string
	Value []byte
	// Revision is the value's place in the bucket, from 1.
	Revision uint64
	Meta     Meta
	// Stored is the server's clock when it took the value. Nothing depends on it.
	Stored time.Time
}

// BucketState tells how whole a bucket is.
type BucketState struct {
	// Last is the revision of the newest value; 0 for an empty bucket.
	Last uint64
	// Messages counts the values that stand.
	Messages uint64
	// Deleted counts the values that are missing between revision 1 and Last. A chain bucket MUST have none.
	Deleted uint64
}

// Bucket keeps every value of every key, in one order.
//
// Reads give errors marked [es.ErrUnavailable] and end there. A message that no projector wrote is given with its key and
// revision beside an error marked [ErrForeign]; whoever goes on with the loop gets what follows. A bounded read MUST give
// everything that stood when it was called, as the bucket's leader has it.
type Bucket interface {
	// State tells how whole the bucket is.
	State(ctx context.Context) (BucketState, error)
	// Tail gives the newest value. It gives errors marked [es.ErrNotFound] for an empty bucket.
	Tail(ctx context.Context) (Entry, error)
	// Put hands over a value, to stand directly after the revision `after`, and returns at once. Puts of one caller reach
	// the bucket in the order of the calls, so that a next one may be handed over before this one is answered.
	//
	// Pending gives errors marked [es.ErrConflict], [es.ErrUnclear], [es.ErrTooLarge], [es.ErrName], [es.ErrFull] or
	// [es.ErrUnavailable].
	Put(ctx context.Context, after uint64, key string, value []byte, meta Meta) es.Pending
	// Entries gives the newest value of every key, by revision. When a read was interrupted and resumed, a key may come
	// again with a newer value.
	Entries(ctx context.Context, filter ...string) iter.Seq2[Entry, error]
	// History gives every value of one key, by revision.
	History(ctx context.Context, key string) iter.Seq2[Entry, error]
	// All gives every value after a revision, by revision.
	All(ctx context.Context, after uint64) iter.Seq2[Entry, error]
}

// Placed is a value with what is kept beside it, as it is put into a bucket.
type Placed struct {
	Key  string
	Data []byte
	Meta Meta
}

// Grouping is a bucket that takes several values at once, for less than each costs alone.
type Grouping interface {
	Bucket
	// MaxGroup is how many values it takes at once.
	MaxGroup() int
	// PutAll hands over values, to stand directly after the revision `after` and in this order, as Put does with one. The first
	// one that is not stored MUST end them: none after it is stored, whoever else puts. Nothing of a group is stored that holds a
	// value which can never be, and its error is marked so.
	//
	// Pending gives errors marked as those of Put. After one, the first values of the group may stand.
	PutAll(ctx context.Context, after uint64, values []Placed) es.Pending
}

// Marks keeps how far each view has read, for views that seldom write a value. They are safe to lose.
type Marks interface {
	// Get gives a mark. It gives errors marked [es.ErrNotFound] or [es.ErrUnavailable].
	Get(ctx context.Context, key string) ([]byte, error)
	// Set replaces a mark. It gives errors marked as [Bucket.Put] does.
	Set(ctx context.Context, key string, value []byte) error
}

// nameOf gives the name of a bucket that has one of its own, as each generation has.
func nameOf(b Bucket, view string) string {
	if named, ok := b.(interface{ Name() string }); ok {
		return named.Name()
	}
	return view
}
