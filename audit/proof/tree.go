package proof

import (
	"context"
	"slices"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/tlog"

	"catenary/es"
)

const (
	// tileHeight is the number of levels of the tree in one tile, as logs in the wild have it.
	tileHeight = 8
	// tileWidth is the number of hashes in a full tile.
	tileWidth = 1 << tileHeight
	// tileBytes is the size of a full tile.
	tileBytes = tileWidth * tlog.HashSize
	// mostCached bounds the tiles kept in memory, 1 MiB: the way of a proof through 10 million events has three of them.
	mostCached = 128
)

// Tiles keeps full tiles: the 256 hashes at one level of the tree that share a place. A tile never changes once it is full.
type Tiles interface {
	// Tile gives a full tile. It gives errors marked [es.ErrNotFound] or [es.ErrUnavailable].
	Tile(ctx context.Context, level int, n int64) ([]byte, error)
	// PutTile keeps a full tile; keeping it again changes nothing. It gives errors marked [es.ErrFull] or [es.ErrUnavailable].
	PutTile(ctx context.Context, level int, n int64, data []byte) error
}

// tree is the Merkle tree over the events so far. Only full tiles are kept; the tree's right edge is in memory, and is made again
// from at most 255 events when it is lost.
type tree struct {
	tiles Tiles
	size  int64
	edges [][]byte // by level: the hashes of the tile that is not full yet
	cache map[tlog.Tile][]byte
}

// openTree gives the tree over the events of all full tiles up to a size. It gives errors marked [es.ErrNotFound] when a tile is
// missing: the tree is to be built anew then.
func openTree(ctx context.Context, tiles Tiles, size int64) (*tree, error) {
	t := &tree{tiles: tiles, size: size - size%tileWidth, cache: map[tlog.Tile][]byte{}}
	t.edges = append(t.edges, nil)
	for level, full := 0, t.size/tileWidth; full > 0; level, full = level+1, full/tileWidth {
		var edge []byte
		for n := full - full%tileWidth; n < full; n++ {
			data, err := t.load(ctx, level, n)
			if err != nil {
				return nil, err
			}
			root := rootOf(data)
			edge = append(edge, root[:]...)
		}
		t.edges = append(t.edges, edge)
	}
	return t, nil
}

// add puts one more event's leaf into the tree. After an error the tree is what it was: the tiles that it fills are kept first.
func (t *tree) add(ctx context.Context, leaf tlog.Hash) error {
	size, level, h := t.size+1, 0, leaf
	for ; level < len(t.edges) && len(t.edges[level]) == tileBytes-tlog.HashSize; level++ {
		tile := append(slices.Clip(t.edges[level]), h[:]...)
		if err := t.tiles.PutTile(ctx, level, size>>(tileHeight*(level+1))-1, tile); err != nil {
			return err
		}
		h = rootOf(tile)
	}
	clear(t.edges[:level])
	if level == len(t.edges) {
		t.edges = append(t.edges, nil)
	}
	t.edges[level] = append(t.edges[level], h[:]...)
	t.size = size
	return nil
}

// full is the number of full tiles at a level.
func (t *tree) full(level int) int64 { return t.size >> (tileHeight * (level + 1)) }

// root gives the root over the first events.
func (t *tree) root(ctx context.Context, size int64) (tlog.Hash, error) {
	return tlog.TreeHash(size, t.reader(ctx))
}

func (t *tree) reader(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			tile := tlog.TileForIndex(tileHeight, index)
			data, err := t.data(ctx, tile)
			if err != nil {
				return nil, err
			}
			if found[i], err = tlog.HashFromTile(tile, data, index); err != nil {
				return nil, errors.Wrapf(err, "tile %d.%d", tile.L, tile.N)
			}
		}
		return found, nil
	})
}

func (t *tree) data(ctx context.Context, tile tlog.Tile) ([]byte, error) {
	if tile.N >= t.full(tile.L) {
		if tile.L >= len(t.edges) {
			return nil, errors.AssertionFailedf("a tree of %d events has no tile %d.%d", t.size, tile.L, tile.N)
		}
		return t.edges[tile.L], nil
	}
	return t.load(ctx, tile.L, tile.N)
}

func (t *tree) load(ctx context.Context, level int, n int64) ([]byte, error) {
	key := tlog.Tile{H: tileHeight, L: level, N: n}
	if data, ok := t.cache[key]; ok {
		return data, nil
	}
	data, err := t.tiles.Tile(ctx, level, n)
	if err == nil && len(data) != tileBytes {
		err = errors.Mark(errors.Newf("tile %d.%d has %d bytes, not %d", level, n, len(data), tileBytes), es.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if len(t.cache) >= mostCached {
		clear(t.cache)
	}
	t.cache[key] = data
	return data, nil
}

// rootOf gives the hash of the subtree over a full tile.
func rootOf(tile []byte) tlog.Hash {
	level := make([]tlog.Hash, tileWidth)
	for i := range level {
		copy(level[i][:], tile[i*tlog.HashSize:])
	}
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	return level[0]
}
