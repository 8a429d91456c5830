package proof

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/tlog"

	"catenary/es"
)

// awayTiles keeps tiles, and does not while they are away at a level.
type awayTiles struct {
	kept map[tlog.Tile][]byte
	away map[int]bool
}

func (a awayTiles) Tile(_ context.Context, level int, n int64) ([]byte, error) {
	data, ok := a.kept[tlog.Tile{L: level, N: n}]
	if !ok {
		return nil, errors.Mark(errors.Newf("no tile %d.%d", level, n), es.ErrNotFound)
	}
	return data, nil
}

func (a awayTiles) PutTile(_ context.Context, level int, n int64, data []byte) error {
	if a.away[level] {
		return errors.Mark(errors.New("the tiles are away"), es.ErrUnavailable)
	}
	a.kept[tlog.Tile{L: level, N: n}] = data
	return nil
}

// TestTreeOutlastsItsTiles: while a full tile can't be kept, at any level, the tree stands as it was, can be signed, and takes the same
// event later.
func TestTreeOutlastsItsTiles(t *testing.T) {
	t.Parallel()
	tiles := awayTiles{map[tlog.Tile][]byte{}, map[int]bool{}}
	tr, err := openTree(t.Context(), tiles, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int64]tlog.Hash{} // what the same events have as stored hashes, by the library's own count
	whole := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			found[i] = all[index]
		}
		return found, nil
	})
	for n := range int64(tileWidth*tileWidth + tileWidth + 1) {
		leaf := tlog.Hash(sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))))
		stored, err := tlog.StoredHashesForRecordHash(n, leaf, whole)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range stored {
			all[tlog.StoredHashIndex(0, n)+int64(i)] = h
		}
		for level := 0; (n+1)%(1<<(tileHeight*(level+1))) == 0; level++ {
			tiles.away[level] = true
			if err := tr.add(t.Context(), leaf); !errors.Is(err, es.ErrUnavailable) {
				t.Fatalf("event %d with level %d away gave %v", n+1, level, err)
			}
			sameRoot(t, tr, n, whole)
			tiles.away[level] = false
		}
		if err := tr.add(t.Context(), leaf); err != nil {
			t.Fatal(err)
		}
		if (n+1)%tileWidth <= 1 {
			sameRoot(t, tr, n+1, whole)
		}
	}
}

// sameRoot compares the root of a tree with that over so many events.
func sameRoot(t *testing.T, tr *tree, size int64, whole tlog.HashReader) {
	t.Helper()
	want, err := tlog.TreeHash(size, whole)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tr.root(t.Context(), tr.size)
	if err != nil || got != want || tr.size != size {
		t.Fatalf("the root over %d events is %v (%v), want %v over %d", tr.size, got, err, want, size)
	}
}
