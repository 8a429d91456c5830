package project

import "catenary/es"

// View is a pure fold from events to the values of one bucket. Its state is nothing but the values that stand in the
// bucket, so it can be taken up from there.
//
// A view is used by one goroutine at a time.
type View interface {
	// Name is the bucket the view's values go to.
	Name() string
	// Version is raised when the same events would give other values. A bucket written by another version is rebuilt.
	Version() int
	// Load takes in a value that stands in the bucket, before folding goes on from the bucket's position. It gives
	// errors for a value that is not one of the view's.
	Load(key string, value []byte) error
	// Fold gives the values an event leads to, none for an event that does not concern the view. The same state and
	// event MUST give the same bytes. It gives errors for an event it can't fold; its state is then as before.
	Fold(e es.Event) ([]Value, error)
}

// Value is one value for one key.
type Value struct {
	Key  string
	Data []byte
}
