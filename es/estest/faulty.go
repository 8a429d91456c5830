package estest

import (
	"context"
	"iter"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Faulty is a store whose appends and reads fail as a test's script says. Without a script it is the store it wraps. It is
// safe for use by many goroutines.
type Faulty struct {
	es.Store

	mu      sync.Mutex
	script  []Fault
	late    []held
	readErr error
}

// Fault is what becomes of one append.
type Fault func(f *Faulty, ctx context.Context, after es.Head, batch []es.Message) es.Pending

type held struct {
	after es.Head
	batch []es.Message
}

// errLost is the cause of every scripted unclear outcome.
var errLost = errors.New("the answer was lost")

// NewFaulty wraps a store.
func NewFaulty(s es.Store) *Faulty { return &Faulty{Store: s} }

// Script says what becomes of the next appends, in the order they are handed over. Those after the script's end pass.
func (f *Faulty) Script(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, faults...)
}

// BreakReads makes every read fail, with an error marked [es.ErrUnavailable], until [Faulty.MendReads].
func (f *Faulty) BreakReads() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readErr = errors.Mark(errors.New("reads are broken by the test"), es.ErrUnavailable)
}

// MendReads makes reads work again.
func (f *Faulty) MendReads() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readErr = nil
}

// DeliverLate hands over what [StoreLate] kept, in order, with the guards it was sent with. It gives the outcomes.
func (f *Faulty) DeliverLate(ctx context.Context) []error {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	var outcomes []error
	for _, h := range late {
		outcomes = append(outcomes, es.Wait(ctx, f.Store.Append(ctx, h.after, h.batch)))
	}
	return outcomes
}

// Pass hands the append to the store.
func Pass(f *Faulty, ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	return f.Store.Append(ctx, after, batch)
}

// LoseAck stores the append but loses the answer.
func LoseAck(f *Faulty, ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	// The loss is told when the append is over: else it would race with the reads that look for it.
	_ = es.Wait(ctx, f.Store.Append(ctx, after, batch))
	return unclear()
}

// LoseAppend loses the append on its way to the store.
func LoseAppend(*Faulty, context.Context, es.Head, []es.Message) es.Pending { return unclear() }

// StoreLate tells at once that the outcome is unclear, and keeps the append until [Faulty.DeliverLate] or [AfterLate].
func StoreLate(f *Faulty, _ context.Context, after es.Head, batch []es.Message) es.Pending {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = append(f.late, held{after: after, batch: batch})
	return unclear()
}

// AfterLate hands over what was kept, just before the append itself: the late one wins.
func AfterLate(f *Faulty, ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	f.DeliverLate(ctx)
	return f.Store.Append(ctx, after, batch)
}

// Refuse gives an outcome without handing the append over: one marked [es.ErrFull] or [es.ErrUnavailable], say.
func Refuse(err error) Fault {
	return func(*Faulty, context.Context, es.Head, []es.Message) es.Pending { return resolved(err) }
}

// HoldAck stores the append and gives the true answer when the channel is closed.
func HoldAck(release <-chan struct{}) Fault {
	return func(f *Faulty, ctx context.Context, after es.Head, batch []es.Message) es.Pending {
		inner := f.Store.Append(ctx, after, batch)
		p := es.NewPromise()
		go func() {
			select {
			case <-release:
				p.Resolve(es.Wait(ctx, inner))
			case <-ctx.Done():
				p.Resolve(errors.Mark(ctx.Err(), es.ErrUnclear))
			}
		}()
		return p
	}
}

func unclear() es.Pending { return resolved(errors.Mark(errLost, es.ErrUnclear)) }

func resolved(err error) es.Pending {
	p := es.NewPromise()
	p.Resolve(err)
	return p
}

// Append does what the script says.
func (f *Faulty) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	f.mu.Lock()
	fault := Pass
	if len(f.script) > 0 {
		fault, f.script = f.script[0], f.script[1:]
	}
	f.mu.Unlock()
	return fault(f, ctx, after, batch)
}

func (f *Faulty) broken() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readErr
}

// Tail reads the tail, or fails.
func (f *Faulty) Tail(ctx context.Context) (uint64, error) {
	if err := f.broken(); err != nil {
		return 0, err
	}
	return f.Store.Tail(ctx)
}

// Get reads one message, or fails.
func (f *Faulty) Get(ctx context.Context, sequence uint64) (es.Message, error) {
	if err := f.broken(); err != nil {
		return es.Message{}, err
	}
	return f.Store.Get(ctx, sequence)
}

// Read reads all messages after a sequence, or fails; also in the middle.
func (f *Faulty) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return f.breaking(f.Store.Read(ctx, after))
}

// ReadAggregate reads one instance's messages, or fails; also in the middle.
func (f *Faulty) ReadAggregate(ctx context.Context, ref es.Ref) iter.Seq2[es.Message, error] {
	return f.breaking(f.Store.ReadAggregate(ctx, ref))
}

// Follow follows, or fails; also in the middle.
func (f *Faulty) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return f.breaking(f.Store.Follow(ctx, after))
}

func (f *Faulty) breaking(messages iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		if err := f.broken(); err != nil {
			yield(es.Message{}, err)
			return
		}
		for m, err := range messages {
			if broken := f.broken(); broken != nil {
				m, err = es.Message{}, broken
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
