package dispatch_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// errCut is the cause of every outcome that a process is not told.
var errCut = errors.New("cut off by the test")

// process is the store as one writer's process sees it: it may be killed, it stands still now and then, and answers get lost.
type process struct {
	es.Store
	dead atomic.Bool
	// waiting counts appends that were told unclear and are handed over later.
	waiting sync.WaitGroup
	// calm says that nothing but a kill happens to it.
	calm bool

	mu     sync.Mutex
	random *rand.Rand
}

// roll gives a number below 100 and a pause of some milliseconds.
func (p *process) roll() (int, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm {
		return 100, 0
	}
	return p.random.IntN(100), time.Duration(1+p.random.IntN(15)) * time.Millisecond
}

// stall stops the calling goroutine: of the writer itself in Append, as when its process is stopped.
func stall(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func outcome(err error) es.Pending {
	p := es.NewPromise()
	p.Resolve(err)
	return p
}

func (p *process) unclear() error { return errors.Mark(errCut, es.ErrUnclear) }

// Append may be lost, stored without an answer, stored late, or sent only after a pause in which others go on.
func (p *process) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	dice, pause := p.roll()
	switch {
	case p.dead.Load(), dice < 2:
		return outcome(p.unclear())
	case dice < 6: // stored, but the answer is lost
		_ = es.Wait(ctx, p.Store.Append(ctx, after, batch))
		return outcome(p.unclear())
	case dice < 9: // still on its way when the writer gives up waiting for the answer
		p.waiting.Go(func() {
			stall(ctx, pause)
			_ = es.Wait(ctx, p.Store.Append(ctx, after, batch))
		})
		return outcome(p.unclear())
	case dice < 13:
		stall(ctx, pause)
	}
	inner, told := p.Store.Append(ctx, after, batch), es.NewPromise()
	go func() {
		err := es.Wait(ctx, inner)
		if p.dead.Load() {
			err = p.unclear()
		}
		told.Resolve(err)
	}()
	return told
}

// Tail stalls now and then.
func (p *process) Tail(ctx context.Context) (uint64, error) {
	if dice, pause := p.roll(); dice < 5 {
		stall(ctx, pause)
	}
	if p.dead.Load() {
		return 0, errors.Mark(errCut, es.ErrUnavailable)
	}
	return p.Store.Tail(ctx)
}

// liar is a store with a fault that no writer can make good, for tests of the tests.
type liar struct {
	es.Store
	mu     sync.Mutex
	random *rand.Rand
	lie    func(l *liar, ctx context.Context, after es.Head, batch []es.Message) es.Pending
	// old is how far back Tail sees.
	old uint64
	// odds is how often it lies: once in so many times.
	odds int
}

func (l *liar) sometimes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.IntN(l.odds) == 0
}

// ackUnstored says that what it has dropped is stored.
func ackUnstored(*liar, context.Context, es.Head, []es.Message) es.Pending { return outcome(nil) }

// ackEarly says that an append is stored before it is: another's may come first.
func ackEarly(l *liar, ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	go func() {
		stall(ctx, 5*time.Millisecond)
		l.Store.Append(ctx, after, batch)
	}()
	return outcome(nil)
}

// Append lies now and then.
func (l *liar) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	if l.lie != nil && after.Sequence > 0 && l.sometimes() {
		return l.lie(l, ctx, after, batch)
	}
	return l.Store.Append(ctx, after, batch)
}

// Tail gives a tail that was the true one some events ago, as a copy that lags behind does.
func (l *liar) Tail(ctx context.Context) (uint64, error) {
	tail, err := l.Store.Tail(ctx)
	if l.old > 0 && tail > l.old && l.sometimes() {
		return tail - l.old, err
	}
	return tail, err
}
