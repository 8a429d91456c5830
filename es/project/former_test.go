package project_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// laterClock is a clock that can be put on.
type laterClock struct{ by atomic.Int64 }

func (c *laterClock) now() time.Time      { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *laterClock) add(d time.Duration) { c.by.Add(int64(d)) }

// buckets lists the names of a view's buckets.
func buckets(t *testing.T, g *projecttest.Generations, view string) []string {
	t.Helper()
	found, err := g.List(bounded(t), view)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.Bucket
	}
	return names
}

// TestFormerGenerationsAreRemoved: what readers left long ago, and what was never named by the pointer, is removed; what is read, and what
// is being built, stays.
func TestFormerGenerationsAreRemoved(t *testing.T) {
	t.Parallel()
	s, g, clock := gate(store(t, history(40)...)), &projecttest.Generations{}, &laterClock{}
	cfg := kept(s.Store, g, newSums)
	cfg.Store, cfg.Clock, cfg.KeepFormer, cfg.TidyInterval = s, clock.now, time.Hour, 5*time.Millisecond
	r := start(t, cfg)
	r.wait(40)
	for range 2 {
		r.rebuilt("sums", project.RebuildOptions{Anew: true})
	}
	orphan := g.Of("sums-g7")
	orphan.Forge("t1", []byte(`{"sum":1}`), project.Meta{})
	open := s.close()
	k := r.begin("sums", project.RebuildOptions{Anew: true}) // the fourth
	<-s.waits
	clock.add(59 * time.Minute)
	if have := buckets(t, g, "sums"); len(have) != 5 {
		t.Errorf("before their time is over there are %v", have)
	}
	clock.add(2 * time.Minute)
	// The present one, and the one that is built.
	for ctx := bounded(t); len(buckets(t, g, "sums")) > 2; breathe() {
		if ctx.Err() != nil {
			t.Fatalf("there are still %v", buckets(t, g, "sums"))
		}
	}
	open()
	if built, err := result(t, k); err != nil || built.Bucket != "sums-g4" {
		t.Errorf("built %+v, %v", built, err)
	}
	same(t, s, newSums, g.Read("sums"))
	p, err := g.Pointer(bounded(t), "sums")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Former {
		if removed := !f.Removed.IsZero(); removed != (f.Bucket != "sums-g3") {
			t.Errorf("of %s the pointer says that it was removed at %v", f.Bucket, f.Removed)
		}
	}
	if len(p.Former) != 4 {
		t.Errorf("former ones: %+v", p.Former)
	}
}

// TestNamesComeAgain: where all names are taken the oldest one is used again, but not before readers are gone from it.
func TestNamesComeAgain(t *testing.T) {
	t.Parallel()
	s, g, clock := store(t, history(40)...), &projecttest.Generations{Most: 3}, &laterClock{}
	cfg := kept(s, g, newSums)
	cfg.Clock = clock.now
	r := start(t, cfg)
	r.wait(40)
	for range 2 {
		r.rebuilt("sums", project.RebuildOptions{Anew: true})
	}
	if _, err := r.done("sums", project.RebuildOptions{Anew: true}); !errors.Is(err, es.ErrFull) {
		t.Errorf("a fourth at once gives %v", err)
	}
	for _, bucket := range []string{"sums", "sums-g2", "sums-g3", "sums"} {
		clock.add(11 * time.Minute)
		if built := r.rebuilt("sums", project.RebuildOptions{Anew: true}); built.Bucket != bucket {
			t.Errorf("built %+v, want %s", built, bucket)
		}
		r.wait(projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1})))
		same(t, s, newSums, g.Read("sums"))
	}
	if p, err := g.Pointer(bounded(t), "sums"); err != nil || len(p.Former) != 2 {
		t.Errorf("pointer %+v, %v", p, err)
	}
}

// TestWhatIsGivenUpIsRemoved: a generation that an older program began is given up for another, and takes no room any more.
func TestWhatIsGivenUpIsRemoved(t *testing.T) {
	t.Parallel()
	s, g := gate(store(t, history(40)...)), &projecttest.Generations{}
	cfg := kept(s.Store, g, newSums)
	projecttest.Run(t, cfg, 40)
	// The older program began a generation and has put values there.
	p, err := g.Pointer(bounded(t), "sums")
	if err != nil {
		t.Fatal(err)
	}
	p.Next = &project.Generation{Number: 2, Bucket: "sums-g2", Reason: "it was asked for"}
	if err := g.Point(bounded(t), "sums", p); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries(t, g.Of("sums"))[:10] {
		g.Of("sums-g2").Forge(e.Key, e.Value, e.Meta)
	}
	r := start(t, kept(s.Store, g, newer))
	r.until("sums", func(v project.ViewStatus) bool { return v.State == project.StateRunning && v.Generation == 3 })
	same(t, s, newer, g.Read("sums"))
	if have := buckets(t, g, "sums"); len(have) != 2 || have[1] != "sums-g3" {
		t.Errorf("there are %v", have)
	}
}
