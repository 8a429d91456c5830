package project_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// gated is a store whose bounded reads of the stream wait at a gate while it is shut.
type gated struct {
	*memstore.Store
	mu    sync.Mutex
	shut  chan struct{} // nil while it is open
	waits chan struct{} // hears of each read that waits
}

func gate(s *memstore.Store) *gated { return &gated{Store: s, waits: make(chan struct{}, 100)} }

func (g *gated) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		g.waits <- struct{}{}
		select {
		case <-shut:
		case <-ctx.Done():
		}
	}
	return g.Store.Read(ctx, after)
}

// close shuts the gate, until open is called.
func (g *gated) close() (open func()) {
	shut := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.shut = nil
		close(shut)
	}
}

func (r *running) begin(view string, o project.RebuildOptions) *project.Work {
	r.t.Helper()
	k, err := r.Rebuild(view, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

func result(t *testing.T, k *project.Work) (project.Rebuilt, error) {
	t.Helper()
	select {
	case <-k.Done():
	case <-bounded(t).Done():
		t.Fatalf("it does not end: %+v", k.Progress())
	}
	return k.Result()
}

// fourViews are views of a version that differ by name alone.
func fourViews(version int) (all []func() project.View) {
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, func() project.View { return &sums{name: name, version: version, state: map[string]int{}} })
	}
	return all
}

// TestTwoProjectorsShareTheRoom: two projectors whose views all need a new generation build one at a time between them, and both end well.
func TestTwoProjectorsShareTheRoom(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(60)...), &projecttest.Generations{}
	projecttest.Run(t, kept(s, g, fourViews(1)...), 60)
	room := &narrow{Generations: g}
	var both []*running
	for range 2 {
		cfg := kept(s, g, fourViews(2)...)
		cfg.Generations = room
		both = append(both, start(t, cfg))
	}
	last := projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
	for _, r := range both {
		for _, view := range fourViews(2) {
			r.until(view().Name(), func(v project.ViewStatus) bool {
				if v.State == project.StateStopped {
					t.Fatalf("a view has stopped: %s", v.Reason)
				}
				return v.State == project.StateRunning && v.Generation == 2 && v.Position.Event >= last
			})
		}
	}
	for _, view := range fourViews(2) {
		same(t, s, view, g.Read(view().Name()))
	}
	if refused := room.refusals(); refused != 0 {
		t.Errorf("%d times a second generation was begun", refused)
	}
}

// TestRenewalOutlastsAFullStore: a view whose new generation has no room for a while is not stopped by that.
func TestRenewalOutlastsAFullStore(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(40)...), &projecttest.Generations{}
	projecttest.Run(t, kept(s, g, newSums), 40)
	var mu sync.Mutex
	full := true
	g.Fail = func(call string) error {
		mu.Lock()
		defer mu.Unlock()
		if full && call == "open" {
			return errors.Mark(errors.New("the store is full"), es.ErrFull)
		}
		return nil
	}
	r := start(t, kept(s, g, newer))
	r.until("sums", func(v project.ViewStatus) bool {
		if v.State == project.StateStopped {
			t.Fatalf("the view has stopped: %s", v.Reason)
		}
		return v.State == project.StateRebuilding && strings.Contains(v.Reason, "the store is full")
	})
	mu.Lock()
	full = false
	mu.Unlock()
	r.until("sums", func(v project.ViewStatus) bool { return v.State == project.StateRunning && v.Generation == 2 })
	same(t, s, newer, g.Read("sums"))
}

// TestABrokenOffBuildIsTakenOver: a generation that another projector was asked to build is built further here when that one has ended.
func TestABrokenOffBuildIsTakenOver(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(40)...), &projecttest.Generations{}
	r := start(t, kept(s, g, newSums))
	r.wait(40)
	held := gate(s)
	cfg := kept(s, g, newSums)
	cfg.Store = held
	ends := start(t, cfg)
	ends.wait(40)
	held.close()
	ends.begin("sums", project.RebuildOptions{Anew: true})
	<-held.waits
	if err := ends.stop(); err != nil {
		t.Fatal(err)
	}
	r.until("sums", func(v project.ViewStatus) bool { return v.State == project.StateRunning && v.Generation == 2 })
	same(t, s, newSums, g.Read("sums"))
}

// TestRenewalWaitsForItsTurn: a view that needs a new generation while something else is done for it gets one when that is done.
func TestRenewalWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	s, g := gate(store(t, history(40)...)), &projecttest.Generations{}
	cfg := kept(s.Store, g, newSums)
	cfg.Store = s
	r := start(t, cfg)
	r.wait(40)
	open := s.close()
	k := r.begin("sums", project.RebuildOptions{DryRun: true})
	<-s.waits
	g.Of("sums").Delete(3)
	projecttest.Append(t, newRegistry(), s.Store, order("sums", paused{}))
	r.until("sums", func(v project.ViewStatus) bool { return v.State == project.StatePaused })
	projecttest.Append(t, newRegistry(), s.Store, order("sums", resumed{})) // it is taken up from its bucket
	r.until("sums", func(v project.ViewStatus) bool {
		if v.State == project.StateStopped {
			t.Fatalf("the view has stopped: %s", v.Reason)
		}
		return v.State == project.StateRebuilding
	})
	open()
	if found, err := result(t, k); err != nil || found.Anew == "" {
		t.Errorf("what was done for it gave %+v, %v", found, err)
	}
	r.until("sums", func(v project.ViewStatus) bool { return v.State == project.StateRunning && v.Generation == 2 })
	same(t, s, newSums, g.Read("sums"))
}

// slowCopies are generations whose copies do not follow while they are held.
type slowCopies struct {
	*projecttest.Generations
	mu     sync.Mutex
	fenced bool // copies are held from a fence on
	held   bool
}

func (c *slowCopies) Fence(ctx context.Context, g project.Generation) error {
	c.mu.Lock()
	c.held = c.fenced
	c.mu.Unlock()
	return c.Generations.Fence(ctx, g)
}

func (c *slowCopies) Copied(ctx context.Context, g project.Generation, revision uint64) error {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Generations.Copied(ctx, g, revision)
}

// TestHandOverIsBounded: a view does not stand still for a copy that does not follow. The present generation goes on, and the error says
// what was waited for.
func TestHandOverIsBounded(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(40)...), &slowCopies{Generations: &projecttest.Generations{}, fenced: true}
	cfg := kept(s, g.Generations, newSums)
	cfg.Generations, cfg.MaxHandOver = g, 50*time.Millisecond
	r := start(t, cfg)
	r.wait(40)
	_, err := result(t, r.begin("sums", project.RebuildOptions{Anew: true}))
	if !errors.Is(err, es.ErrUnavailable) || !strings.Contains(err.Error(), "waiting until the copy of bucket sums-g2 has its value") || !strings.Contains(err.Error(), "bucket sums goes on") {
		t.Errorf("it ended with %v", err)
	}
	g.mu.Lock()
	g.fenced, g.held = false, false
	g.mu.Unlock()
	// By now another look may have built it to the end.
	last := projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
	r.passes(last)
	if built, err := result(t, r.begin("sums", project.RebuildOptions{Anew: true})); err != nil || built.Generation == nil {
		t.Errorf("once the copies follow: %+v, %v", built, err)
	}
	r.passes(last)
	same(t, s, newSums, g.Read("sums"))
}

// TestOrdersReachWhoBuilds: a view that is paused while its new generation is built is not handed over before it is resumed, and an event that is to be
// skipped is skipped there too.
func TestOrdersReachWhoBuilds(t *testing.T) {
	t.Parallel()
	t.Run("pause", func(t *testing.T) {
		t.Parallel()
		s, g := gate(store(t, history(40)...)), &projecttest.Generations{}
		cfg := kept(s.Store, g, newSums)
		cfg.Store = s
		r := start(t, cfg)
		r.wait(40)
		open := s.close()
		k := r.begin("sums", project.RebuildOptions{Anew: true})
		<-s.waits
		at := projecttest.Append(t, newRegistry(), s.Store, order("sums", paused{}))
		r.until("sums", func(v project.ViewStatus) bool { return v.State == project.StatePaused })
		open()
		_, err := result(t, k)
		says := fmt.Sprintf("bucket sums-g2 is gone on with when the view is resumed: the view is paused since event %d (by hand)", at)
		if !errors.Is(err, project.ErrStopped) || !strings.Contains(err.Error(), says) {
			t.Errorf("it ended with %v, want that %s", err, says)
		}
		if read := g.Read("sums").Name(); read != "sums" {
			t.Errorf("though paused, readers are sent to %s", read)
		}
		last := projecttest.Append(t, newRegistry(), s.Store, order("sums", resumed{}), thing("t1", added{By: 1}))
		r.until("sums", func(v project.ViewStatus) bool { return v.Generation == 2 && v.Position.Event >= last })
		same(t, s, newSums, g.Read("sums"))
	})
	t.Run("skip", func(t *testing.T) {
		t.Parallel()
		s, g := gate(store(t, history(40)...)), &projecttest.Generations{}
		cfg := kept(s.Store, g, newSums)
		cfg.Store = s
		r := start(t, cfg)
		r.wait(40)
		open := s.close()
		k := r.begin("sums", project.RebuildOptions{Anew: true})
		<-s.waits
		bad := projecttest.Append(t, newRegistry(), s.Store, thing("t1", spoilt{}))
		r.stopped("sums")
		last := projecttest.Append(t, newRegistry(), s.Store, order("sums", skipped{Event: bad}))
		r.until("sums", func(v project.ViewStatus) bool { return v.SkippedCount == 1 })
		open()
		if built, err := result(t, k); err != nil || built.Generation == nil {
			t.Errorf("it ended with %+v, %v", built, err)
		}
		r.passes(last)
		same(t, s, newSums, g.Read("sums"))
	})
}

// TestAnOlderProgramLeavesNewerBucketsAlone: of two programs whose views have different versions the newer one's generation is read, and the
// older one does not build another over it.
func TestAnOlderProgramLeavesNewerBucketsAlone(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(40)...), &projecttest.Generations{}
	older := start(t, kept(s, g, newSums))
	older.wait(40)
	r := start(t, kept(s, g, newer))
	last := projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
	r.until("sums", func(v project.ViewStatus) bool { return v.Generation == 2 && v.Position.Event >= last })
	if v := older.stopped("sums"); !strings.Contains(v.Reason, "run the newer program") {
		t.Errorf("the older program says %q", v.Reason)
	}
	r.wait(projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1})))
	if read := g.Read("sums").Name(); read != "sums-g2" {
		t.Errorf("readers are sent to %s", read)
	}
	same(t, s, newer, g.Read("sums"))
}
