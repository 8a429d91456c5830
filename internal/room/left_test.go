package room_test

import (
	"testing"

	"catenary/internal/room"
	"catenary/internal/topology"
)

// TestALeftGenerationIsNoPlace: a bucket that readers have left keeps what it holds and takes nothing more, and nobody needs room in it.
func TestALeftGenerationIsNoPlace(t *testing.T) {
	t.Parallel()
	b := start(t)
	bucket := topology.BucketStream(topology.BucketNodes)
	b.put(t, topology.BucketSubject(topology.BucketNodes, "n1"), bucket, 0.1)
	s, err := b.js.Stream(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.MaxBytes = int64(s.CachedInfo().State.Bytes)
	if _, err := b.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if s := b.watch(t, "").Look(t.Context()); s.Level != room.Ample {
		t.Errorf("it is %s: %+v", s.Level, s.Not())
	}
}
