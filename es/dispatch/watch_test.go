package dispatch_test

import (
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

// watched is what a watch was told.
type watched struct {
	mu      sync.Mutex
	beats   int
	events  int
	through uint64
	store   []bool // whether the store was in trouble, change by change
}

func (w *watched) watch() dispatch.Watch {
	locked := func(do func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		do()
	}
	return dispatch.Watch{
		Beat: func() { locked(func() { w.beats++ }) },
		Landed: func(through uint64, events int, took time.Duration) {
			locked(func() { w.through, w.events = through, w.events+events })
		},
		Stands: func(through uint64) { locked(func() { w.through = through }) },
		Store:  func(why error) { locked(func() { w.store = append(w.store, why != nil) }) },
	}
}

func (w *watched) read(what func(w *watched) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return what(w)
}

// TestWatch: what lands is told, a store that is full is told once and once that it is not, and the loop is heard of though nothing comes.
func TestWatch(t *testing.T) {
	t.Parallel()
	var w watched
	store := estest.NewFaulty(memory(t))
	b := start(t, store, func(c *dispatch.Config) { c.Patience, c.Watch = time.Second, w.watch() })
	first := b.send(command(pay{Account: "shop", Amount: 5}))
	if !w.read(func(w *watched) bool { return w.through == first.Sequence && w.events == 1 && w.store == nil }) {
		t.Errorf("after event %d it was told %+v", first.Sequence, &w)
	}
	full := estest.Refuse(errors.Mark(errors.New("maximum bytes exceeded"), es.ErrFull))
	store.Script(full, full, estest.Pass)
	for range 2 {
		if a := b.send(command(pay{Account: "shop", Amount: 1})); a.Status != es.StatusRejected {
			t.Fatalf("a full store answers %+v", a)
		}
	}
	last := b.send(command(pay{Account: "shop", Amount: 1}))
	if !w.read(func(w *watched) bool {
		return w.through == last.Sequence && len(w.store) == 2 && w.store[0] && !w.store[1]
	}) {
		t.Errorf("after a store that was full it was told %+v", &w)
	}
	eventually(t, "a beat of a loop with nothing to do", func() bool { return w.read(func(w *watched) bool { return w.beats > 1 }) })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}
