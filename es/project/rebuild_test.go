package project_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// kept is a configuration whose views keep generations.
func kept(s es.Store, g *projecttest.Generations, views ...func() project.View) project.Config {
	cfg := config(s)
	cfg.Generations, cfg.Marks = g, &projecttest.Marks{}
	for _, v := range views {
		cfg.Views = append(cfg.Views, project.ViewSpec{New: v})
	}
	return cfg
}

// newer is the view after a change of its form.
func newer() project.View { return &sums{name: "sums", version: 2, state: map[string]int{}} }

// watch reads keys through the pointer in a loop, as fast as it can, until it is told to end: a key is there always, and never
// with an older value than the one read before.
func watch(t *testing.T, g *projecttest.Generations, view string, keys ...string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	for _, key := range keys {
		group.Go(func() {
			var last project.Entry
			for ctx.Err() == nil {
				b := g.Read(view)
				e, err := b.Get(context.WithoutCancel(ctx), key)
				switch {
				case err != nil:
					t.Errorf("key %s in %s after %+v: %v", key, b.Name(), last.Meta, err)
					return
				case e.Meta.Source.Sequence < last.Meta.Source.Sequence:
					t.Errorf("key %s in %s is of event %d, after one of event %d", key, b.Name(), e.Meta.Source.Sequence, last.Meta.Source.Sequence)
					return
				}
				last = e
				breathe()
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// inOrder makes sure that nobody was told of a value that is older than one told before of its key, and gives the last of each. The keys
// of other views have other names.
func inOrder(t *testing.T, g *projecttest.Generations) (heard map[string]project.Entry) {
	t.Helper()
	heard = map[string]project.Entry{}
	for _, e := range g.Told() {
		if e.Meta.Source.Sequence < heard[e.Key].Meta.Source.Sequence {
			t.Errorf("key %s: the value of event %d is told after that of event %d", e.Key, e.Meta.Source.Sequence, heard[e.Key].Meta.Source.Sequence)
		}
		heard[e.Key] = e
	}
	return heard
}

// told makes sure that whoever heard what was told of a view's values, in order, has the newest of each key.
func told(t *testing.T, g *projecttest.Generations, view string) {
	t.Helper()
	heard := inOrder(t, g)
	for e, err := range g.Read(view).Entries(bounded(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if last := heard[e.Key]; last.Meta.Source != e.Meta.Source || string(last.Value) != string(e.Value) {
			t.Errorf("key %s: last told is %s of event %d, but it is %s of event %d", e.Key, last.Value, last.Meta.Source.Sequence, e.Value, e.Meta.Source.Sequence)
		}
	}
}

// load appends facts in a loop, a number of them at least, until it is told to end. It then gives the last event.
func load(t *testing.T, s *memstore.Store) (end func() uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	last := make(chan uint64, 1)
	go func() {
		var n uint64
		for i := 0; i < 50 || ctx.Err() == nil; i++ {
			n = projecttest.Append(t, newRegistry(), s, thing("t1", added{By: i}), thing("t3", added{By: 1}))
			breathe()
		}
		last <- n
	}()
	return func() uint64 {
		cancel()
		return <-last
	}
}

// TestRebuildUnderLoad is case C22: while commands keep coming a reader in a loop sees the old value or the new, never none and
// never an older one after a newer, and other views stay as they are.
func TestRebuildUnderLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil   func(b *projecttest.Bucket)
		options project.RebuildOptions
		bucket  string
	}{
		"in place": {func(b *projecttest.Bucket) {
			for _, e := range entries(t, b)[30:40] {
				b.Forge(e.Key, e.Value, e.Meta)
			}
		}, project.RebuildOptions{}, "sums"},
		"a new generation":          {func(b *projecttest.Bucket) {}, project.RebuildOptions{Anew: true}, "sums-g2"},
		"a new one for lost values": {func(b *projecttest.Bucket) { b.Delete(2) }, project.RebuildOptions{}, "sums-g2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := store(t, history(200)...), &projecttest.Generations{}
			r := start(t, kept(s, g, newSums, newEverything))
			r.wait(200)
			c.spoil(&g.Of("sums").Bucket) // what is forged is older than what stood, so nobody reads before it
			endWatch, endLoad := watch(t, g, "sums", "t1", "t3", "s1"), load(t, s)
			result := r.rebuilt("sums", c.options)
			last := endLoad()
			p := r.wait(last)
			endWatch()
			if !result.OK() || result.Bucket != c.bucket || g.Read("sums").Name() != c.bucket || result.Values < 200 {
				t.Errorf("result %+v, and readers are sent to %s", result, g.Read("sums").Name())
			}
			same(t, s, newSums, g.Read("sums"))
			same(t, s, newEverything, g.Read("everything"))
			if state, err := g.Read("sums").State(bounded(t)); err != nil || p["sums"].Revision != state.Last {
				t.Errorf("position %+v, state %+v, %v", p["sums"], state, err)
			}
			told(t, g, "sums")
			if everything := entries(t, g.Of("everything")); uint64(len(everything)) != last {
				t.Errorf("the other view has %d values of %d events", len(everything), last)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			// The old generation stays as it was, and the next start goes on with the new one.
			r = start(t, kept(s, g, newSums, newEverything))
			last = projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
			r.wait(last)
			same(t, s, newSums, g.Read("sums"))
		})
	}
}

// TestChangedFormRenewsItself: a view of another version, and a bucket that lacks values, ask for a new generation by themselves,
// and the old one is read until that is there. It covers cases A06 and C26.
func TestChangedFormRenewsItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil  func(b *projecttest.Bucket)
		view   func() project.View
		reason string
	}{
		"another version":     {func(*projecttest.Bucket) {}, newer, "version 1 of its view"},
		"values lost":         {func(b *projecttest.Bucket) { b.Delete(3) }, newSums, "are missing"},
		"the newest one lost": {func(b *projecttest.Bucket) { b.Delete(40) }, newSums, "are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := store(t, history(40)...), &projecttest.Generations{}
			projecttest.Run(t, kept(s, g, newSums), 40)
			old := entriesOf(t, g.Of("sums"))
			c.spoil(&g.Of("sums").Bucket)
			held, release := make(chan struct{}), make(chan struct{})
			g.Fail = func(call string) error {
				if call == "fence" {
					close(held)
					<-release
				}
				return nil
			}
			r := start(t, kept(s, g, c.view))
			<-held
			v := r.until("sums", func(project.ViewStatus) bool { return true })
			if g.Read("sums").Name() != "sums" || v.State == project.StateRunning || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("while it is built readers are sent to %s and the status is %+v", g.Read("sums").Name(), v)
			}
			close(release)
			p := r.wait(40)
			if g.Read("sums").Name() != "sums-g2" || p["sums"].Revision != uint64(len(old)) {
				t.Errorf("readers are sent to %s, position %+v", g.Read("sums").Name(), p)
			}
			same(t, s, c.view, g.Read("sums"))
			pointer, err := g.Pointer(bounded(t), "sums")
			if err != nil || !strings.Contains(pointer.Reason, c.reason) || pointer.Next != nil || len(pointer.Former) != 1 || pointer.Former[0].Bucket != "sums" || pointer.Former[0].Until.IsZero() {
				t.Errorf("pointer %+v, %v", pointer, err)
			}
			last := projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
			r.wait(last)
			if n := len(entriesOf(t, g.Of("sums"))); n > len(old) {
				t.Errorf("the old generation went on: it has %d values", n)
			}
		})
	}
}

// TestWhatNoGenerationMends: a bucket that says more than the stream, or that somebody else wrote to, is not built anew by itself.
// It covers case A11.
func TestWhatNoGenerationMends(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events int
		spoil  func(b *projecttest.Bucket)
		reason string
	}{
		"an older stream":          {30, func(b *projecttest.Bucket) {}, "come to event 38, but the stream ends at event 30"},
		"an older stream and loss": {30, func(b *projecttest.Bucket) { b.Delete(2) }, "come to event 38, but the stream ends at event 30"},
		"a foreign message":        {40, func(b *projecttest.Bucket) { b.PutForeign("x", nil) }, "somebody else"},
	} {
		g := &projecttest.Generations{}
		projecttest.Run(t, kept(store(t, history(40)...), g, newSums), 40)
		c.spoil(&g.Of("sums").Bucket)
		r := start(t, kept(store(t, history(c.events)...), g, newSums))
		if v := r.stopped("sums"); !strings.Contains(v.Reason, c.reason) || g.Read("sums").Name() != "sums" {
			t.Errorf("%s: %+v", name, v)
		}
		// Whoever knows why may have it built anew.
		if result := r.rebuilt("sums", project.RebuildOptions{}); result.Generation == nil || result.Generation.Number != 2 {
			t.Errorf("%s: %+v", name, result)
		}
		r.wait(uint64(c.events))
		same(t, store(t, history(c.events)...), newSums, g.Read("sums"))
	}
}

// TestRebuildOverAnEventThatCanNotBeFolded is case C21.
func TestRebuildOverAnEventThatCanNotBeFolded(t *testing.T) {
	t.Parallel()
	s, g := store(t, thing("a", added{By: 1}), thing("a", spoilt{}), thing("a", added{By: 1})), &projecttest.Generations{}
	r := start(t, kept(s, g, newSums, newEverything))
	r.stopped("sums")
	for _, o := range []project.RebuildOptions{{}, {Anew: true}} {
		_, err := r.done("sums", o)
		if !errors.Is(err, project.ErrStopped) || !strings.Contains(err.Error(), "event 2") || g.Read("sums").Name() != "sums" {
			t.Errorf("%+v: error %v, want one with the event", o, err)
		}
	}
	if v := r.stopped("sums"); v.At != 2 {
		t.Errorf("status %+v", v)
	}
	r.wait(0)
}

// TestKilledRebuild ends the projector before and after every step of a rebuild. Until readers are sent to the new generation the old
// one serves, and the next start goes on to the end.
func TestKilledRebuild(t *testing.T) {
	t.Parallel()
	steps := func() []string {
		g := &projecttest.Generations{}
		s := store(t, history(40)...)
		projecttest.Run(t, kept(s, g, newSums), 40)
		before := len(g.Calls())
		g.Fail = func(string) error { return nil }
		projecttest.Run(t, kept(s, g, newer), 40)
		return g.Calls()[before:]
	}()
	if len(steps) < 7 {
		t.Fatalf("steps %v", steps)
	}
	for i := range 2 * len(steps) {
		t.Run(fmt.Sprintf("%s, after it %v, %d", steps[i/2], i%2 == 1, i/2), func(t *testing.T) {
			t.Parallel()
			s, g := store(t, history(40)...), &projecttest.Generations{}
			projecttest.Run(t, kept(s, g, newSums), 40)
			endWatch := watch(t, g, "sums", "t1", "t3")
			left := i
			killed := make(chan struct{})
			var once sync.Once
			g.Fail = func(string) error {
				if left == 0 {
					once.Do(func() { close(killed) })
					return errors.Mark(errors.New("killed"), es.ErrUnavailable)
				}
				left--
				return nil
			}
			r := start(t, kept(s, g, newer))
			<-killed
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			g.Fail = nil
			if pointed := g.Read("sums"); pointed.Name() == "sums-g2" {
				same(t, s, newer, pointed)
			} else {
				same(t, s, newSums, pointed)
			}
			r = start(t, kept(s, g, newer))
			last := projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
			r.wait(last)
			endWatch()
			last = projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
			r.wait(last)
			if heard := inOrder(t, g); heard["t1"].Meta.Source.Sequence != last {
				t.Errorf("after the switch it tells of event %d, want %d", heard["t1"].Meta.Source.Sequence, last)
			}
			if pointed := g.Read("sums"); pointed.Name() != "sums-g2" {
				t.Errorf("readers are sent to %s", pointed.Name())
			}
			same(t, s, newer, g.Read("sums"))
		})
	}
}

// TestTwoProjectorsRebuild: both build the same generation, and both go on with it.
func TestTwoProjectorsRebuild(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(200)...), &projecttest.Generations{}
	projecttest.Run(t, kept(s, g, newSums), 200)
	endWatch, endLoad := watch(t, g, "sums", "t1", "t3"), load(t, s)
	a, b := start(t, kept(s, g, newSums)), start(t, kept(s, g, newSums))
	first, err := a.Rebuild("sums", project.RebuildOptions{Anew: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []project.RebuildOptions{{Anew: true}, {}} {
		if joined, err := a.Rebuild("sums", o); err != nil || joined != first {
			t.Errorf("asked again with %+v it gives another work, and %v", o, err)
		}
	}
	if _, err := a.Rebuild("sums", project.RebuildOptions{DryRun: true}); !errors.Is(err, project.ErrWorking) {
		t.Errorf("asked for another kind of work it says %v", err)
	}
	b.rebuilt("sums", project.RebuildOptions{Anew: true})
	<-first.Done()
	if _, err := first.Result(); err != nil {
		t.Error(err)
	}
	last := endLoad()
	a.wait(last)
	b.wait(last)
	endWatch()
	same(t, s, newSums, g.Read("sums"))
}

// TestOtherProjectorFollows: a projector that had no part in a rebuild finds out and goes on with the new generation.
func TestOtherProjectorFollows(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(40)...), &projecttest.Generations{}
	a, b := start(t, kept(s, g, newSums)), start(t, kept(s, g, newSums))
	a.wait(40)
	b.wait(40)
	a.rebuilt("sums", project.RebuildOptions{Anew: true})
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	last := projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}))
	b.wait(last)
	same(t, s, newSums, g.Read("sums"))
}

// TestCleanStartReadsNothingTwice: after a clean stop a start reads only the events that are new.
func TestCleanStartReadsNothingTwice(t *testing.T) {
	t.Parallel()
	s, g := store(t, append(history(200), other(looked{}), other(looked{}))...), &projecttest.Generations{}
	cfg := kept(s, g, newSums, newEverything)
	projecttest.Run(t, cfg, 202)
	counted := &countingStore{Store: s}
	cfg.Store = counted
	r := start(t, cfg)
	r.wait(202)
	last := projecttest.Append(t, newRegistry(), s, thing("t1", added{By: 1}), thing("t1", added{By: 1}), thing("t1", added{By: 1}))
	r.wait(last)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]uint64{203, 204, 205}, counted.read()); diff != "" {
		t.Errorf("events read (-want +have):\n%s", diff)
	}
}

// narrow has room for one generation besides those that are read.
type narrow struct {
	*projecttest.Generations
	mu      sync.Mutex
	opened  map[string]string // the view of each bucket that was opened to be built
	refused int
}

func (n *narrow) Open(ctx context.Context, g project.Generation) (project.Bucket, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.opened == nil {
		n.opened = map[string]string{}
	}
	view, _, _ := strings.Cut(g.Bucket, "-g")
	n.opened[g.Bucket] = view
	for bucket, view := range n.opened {
		if bucket != g.Bucket && n.Read(view).Name() != bucket {
			delete(n.opened, g.Bucket)
			n.refused++
			return nil, errors.Mark(errors.Newf("no room for bucket %s beside %s", g.Bucket, bucket), es.ErrFull)
		}
	}
	return n.Generations.Open(ctx, g)
}

// refusals counts how often there was no room.
func (n *narrow) refusals() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused
}

// TestManyChangedForms: a program in which all views have another form builds them anew one after another, as there is room.
func TestManyChangedForms(t *testing.T) {
	t.Parallel()
	s, g := store(t, history(40)...), &projecttest.Generations{}
	r := start(t, kept(s, g, fourViews(1)...))
	r.wait(40)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cfg := kept(s, g, fourViews(2)...)
	cfg.Generations = &narrow{Generations: g}
	r = start(t, cfg)
	r.passes(40)
	for _, view := range fourViews(2) {
		name := view().Name()
		r.until(name, func(v project.ViewStatus) bool { return v.State == project.StateRunning && v.Generation == 2 })
		same(t, s, view, g.Read(name))
	}
}
