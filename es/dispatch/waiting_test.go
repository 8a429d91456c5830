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

// unreadable is a store that does not give single events.
type unreadable struct{ es.Store }

func (unreadable) Get(ctx context.Context, _ uint64) (es.Message, error) {
	<-ctx.Done()
	return es.Message{}, ctx.Err()
}

// More repeats than first answers can be read at once, over a store that does not give them: that each is done is known, so none
// is told unknown.
func TestRepeatsThatCannotBeReadAreBusy(t *testing.T) {
	t.Parallel()
	b := start(t, unreadable{memory(t)}, func(c *dispatch.Config) { c.Patience = 200 * time.Millisecond })
	first := command(pay{Account: "shop", Amount: 1})
	if a := b.send(first); a.Status != es.StatusAccepted {
		t.Fatalf("%+v", a)
	}
	var answers []<-chan es.Answer
	for range 200 {
		answers = append(answers, b.submit(first))
	}
	for i, answer := range answers {
		select {
		case a := <-answer:
			if a.Status != es.StatusBusy || a.Error.Code != "repeat-not-read" || a.Error.RetryAfterMillis == 0 {
				t.Errorf("repeat %d: %+v %+v", i, a, a.Error)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("repeat %d got no answer", i)
		}
	}
}
