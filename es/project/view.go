package project

import "catenary/es"

// View is a pure fold from events to the values of one bucket. Its state is nothing but the values that stand in the
// bucket, so it can be taken up from there.
//
// A view is used by one goroutine at a time. Events are shared between views: a view MUST NOT change them.
type View interface {
	// Name is the bucket the view's values go to.
	Name() string
	// Version is raised when the same events would give other values, and when the view has learnt to fold events that it
	// could not, since they may have been parked. A bucket written by another version is rebuilt.
	Version() int
	// Load takes in a value that stands in the bucket, before folding goes on from the bucket's position. It gives
	// errors for a value that is not one of the view's.
	Load(key string, value []byte) error
	// Fold gives the values an event leads to, none for an event that does not concern the view. The same state and
	// event MUST give the same bytes, and one event MUST NOT give two values for one key. It gives errors for an event it
	// can't fold; its state is then as before.
	Fold(e es.Event) ([]Value, error)
}

// Selective is a view that reads some aggregates only. Events of others are never handed to its Fold, and one of them that
// this program can't read does not stop it.
type Selective interface {
	View
	// Aggregates lists the aggregates the view reads. It MUST always give the same.
	Aggregates() []string
}

// Keyed is a view whose fold of an event depends on few values: those that stand under the keys it reads. Whoever loads just these
// into a view without state gets what a view with the whole state gives.
type Keyed interface {
	Selective
	// Reads lists the keys whose values the fold of an event depends on.
	Reads(e es.Event) []string
}

// Value is one value for one key.
type Value struct {
	Key  string
	Data []byte
}
