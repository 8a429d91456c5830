package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

// asked counts the reads of a store's tail.
type asked struct {
	es.Store
	tails atomic.Int64
}

func (a *asked) Tail(ctx context.Context) (uint64, error) {
	a.tails.Add(1)
	return a.Store.Tail(ctx)
}

// A store that can't be reached and says so at once is asked for its tail now and then, not all the time.
func TestTailIsNotAskedForWithoutEnd(t *testing.T) {
	t.Parallel()
	broken := estest.NewFaulty(memory(t))
	store := &asked{Store: broken}
	b := start(t, store, func(c *dispatch.Config) { c.Patience = 400 * time.Millisecond })
	broken.BreakReads()
	began := time.Now()
	if a := b.send(command(pay{Account: "shop"})); a.Status != es.StatusUnknown {
		t.Errorf("got %+v", a)
	}
	if n, most := store.tails.Load(), 10+int64(time.Since(began)/(20*time.Millisecond)); n > most {
		t.Errorf("the tail was asked for %d times, want %d at most", n, most)
	}
	broken.MendReads()
}
