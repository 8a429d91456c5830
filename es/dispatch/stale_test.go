package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"

	"catenary/es"
)

// lateTail is a store whose tail is read, the first time, only when the test says so.
type lateTail struct {
	es.Store
	later       atomic.Bool
	asked, read chan struct{}
}

func (l *lateTail) Tail(ctx context.Context) (uint64, error) {
	if !l.later.Swap(true) {
		close(l.asked)
		select {
		case <-l.read:
		case <-ctx.Done():
		}
	}
	return l.Store.Tail(ctx)
}

// A command without events that was decided on an old world is not answered from it, when an append that lost the race to
// another writer brings the new world in before the tail is read.
func TestNothingIsAnsweredFromAnOldWorld(t *testing.T) {
	t.Parallel()
	truth := memory(t)
	late := &lateTail{Store: truth, asked: make(chan struct{}), read: make(chan struct{})}
	b := start(t, late)
	if a := start(t, truth).send(command(pay{Account: "shop", Amount: 5})); a.Status != es.StatusAccepted {
		t.Fatalf("another writer: %+v", a)
	}
	question := b.submit(command(pay{Account: "shop"}))
	<-late.asked
	if a := b.send(command(pay{Account: "else", Amount: 1})); a.Status != es.StatusAccepted {
		t.Fatalf("the one that loses the race first: %+v", a)
	}
	close(late.read)
	if a := <-question; a.Status != es.StatusUnchanged || a.Version != 1 {
		t.Errorf("%+v; want version 1, which was answered to another client before", a)
	}
}
