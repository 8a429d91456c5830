package chain

import (
	"context"
	"iter"

	"catenary/es/project"
)

// Bucket is what a reader needs of a bucket, be it the projector's own or a mirror of it. Errors are marked
// [es.ErrUnavailable] when it can't be reached.
type Bucket interface {
	// Get gives the newest value of a key; errors are marked [es.ErrNotFound].
	Get(ctx context.Context, key string) (project.Entry, error)
	// Values gives all values of each key that fits the filter, oldest first. A key is a filter that fits itself.
	Values(ctx context.Context, filter ...string) iter.Seq2[project.Entry, error]
	// Entries gives the newest value of each key that fits the filter, in no order of keys. A key may come again with a
	// newer value.
	Entries(ctx context.Context, filter ...string) iter.Seq2[project.Entry, error]
	// Page gives the newest values of the first keys after a key, in the order of the keys.
	Page(ctx context.Context, filter, afterKey string, limit int) ([]project.Entry, error)
	// State gives the bucket's last revision.
	State(ctx context.Context) (project.BucketState, error)
}
