package proof

import (
	"context"
	"fmt"
)

// KeyValue is a small bucket that keeps one value a key.
type KeyValue interface {
	// Get gives the value of a key. It gives errors marked es.ErrNotFound or es.ErrUnavailable.
	Get(ctx context.Context, key string) ([]byte, error)
	// Set replaces the value of a key. It gives errors marked es.ErrFull, es.ErrUnclear or es.ErrUnavailable.
	Set(ctx context.Context, key string, value []byte) error
}

// BucketTiles keeps tiles in a bucket, under <level>.<number>.
type BucketTiles struct{ Bucket KeyValue }

var _ Tiles = BucketTiles{}

func tileKey(level int, n int64) string { return fmt.Sprintf("%d.%d", level, n) }

// Tile implements [Tiles].
func (b BucketTiles) Tile(ctx context.Context, level int, n int64) ([]byte, error) {
	return b.Bucket.Get(ctx, tileKey(level, n))
}

// PutTile implements [Tiles].
func (b BucketTiles) PutTile(ctx context.Context, level int, n int64, data []byte) error {
	return b.Bucket.Set(ctx, tileKey(level, n), data)
}
