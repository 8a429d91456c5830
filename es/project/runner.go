package project

import (
	"context"
	"slices"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Runner folds the stream into the buckets of its views: one reader of the stream, and a goroutine for each view. A view
// that can't go on at the moment leaves the reader, catches up with one of its own and comes back, so that no view waits
// for another's trouble.
//
// Any number of runners may run over the same buckets at once: each value is stored once, and who comes second finds its
// value standing.
type Runner struct {
	cfg     Config
	workers []*worker

	mu       sync.Mutex
	started  bool
	attached []*attachment // replaced, never changed
	handed   uint64        // the last event handed to who is attached
	tail     uint64        // the stream's tail as last heard
	failure  error         // why nothing goes on at all
}

// attachment is a view's place at the reader.
type attachment struct {
	feed chan *item
	gone chan struct{} // closed when the view has left
}

// feedEvents is how many events a view may be behind the reader before the reader waits for it.
const feedEvents = 256

// item is one event as all views get it. Nobody changes it.
type item struct {
	head  es.Head // the head of the chain with this event: its sequence and its hash
	event es.Event
	err   error // why the event can't be read, if so
}

// New checks the configuration and makes a runner. Nothing is read before [Runner.Run].
func New(cfg Config) (*Runner, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg}
	for _, spec := range cfg.Views {
		r.workers = append(r.workers, newWorker(r, spec))
	}
	return r, nil
}

// Run folds until the context ends; it returns nil then, after what is on its way has been answered and every view has
// left its mark. A view that can't go on stops with a reason that [Runner.Status] shows, and the others go on.
//
// It gives errors marked [es.ErrBrokenChain] when the stream itself is damaged: nothing after the damage is folded. A
// runner runs once.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	again := r.started
	r.started = true
	r.mu.Unlock()
	if again {
		return errors.AssertionFailedf("projector: a runner runs once")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		for _, w := range r.workers {
			w.track.end()
		}
	}()

	r.takeUp(ctx)
	head, err := r.start(ctx)
	if err != nil || ctx.Err() != nil {
		return r.failed(err, cancel)
	}
	var group sync.WaitGroup
	group.Go(func() { r.failed(r.read(ctx, head), cancel) })
	for _, w := range r.workers {
		group.Go(func() { r.failed(w.run(ctx), cancel) })
	}
	group.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// failed keeps the first reason why nothing can go on, and ends everything.
func (r *Runner) failed(err error, cancel context.CancelFunc) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	first := r.failure == nil
	if first {
		r.failure = err
	}
	r.mu.Unlock()
	if first {
		r.cfg.Logger.Error("the projector stops: the stream is damaged", "reason", err)
	}
	for _, w := range r.workers {
		w.track.halt(&stopError{reason: err}, r.cfg.Clock())
	}
	cancel()
	return err
}

// takeUp takes every view up from its bucket, all at the same time. One that does not succeed tries again on its own.
func (r *Runner) takeUp(ctx context.Context) {
	var group sync.WaitGroup
	for _, w := range r.workers {
		group.Go(func() { w.first = w.load(ctx) })
	}
	group.Wait()
}

// start says where the one reader begins: after the lowest position of the views that were taken up, which are attached
// before it reads, or at the tail when there is none.
func (r *Runner) start(ctx context.Context) (es.Head, error) {
	pace := newPace()
	for {
		head, err := r.lowest(ctx)
		if err == nil || errors.Is(err, es.ErrBrokenChain) {
			r.mu.Lock()
			r.handed = head.Sequence
			r.mu.Unlock()
			for _, w := range r.workers {
				if w.first == nil {
					w.place, _ = r.attach()
				}
			}
			return head, err
		}
		r.cfg.Logger.Warn("the projector can't read the stream; it tries again", "reason", err)
		if !pace.wait(ctx, maxPause) {
			return head, nil
		}
	}
}

func (r *Runner) lowest(ctx context.Context) (es.Head, error) {
	var heads []es.Head
	for _, w := range r.workers {
		if w.first == nil {
			heads = append(heads, w.head)
		}
	}
	if len(heads) > 0 {
		return slices.MinFunc(heads, func(a, b es.Head) int { return int(int64(a.Sequence) - int64(b.Sequence)) }), nil
	}
	tail, err := r.cfg.Store.Tail(ctx)
	if err != nil {
		return es.Head{}, err
	}
	return headAt(ctx, r.cfg.Store, tail)
}

// headAt gives the head of the chain at an event, from which what follows can be verified.
func headAt(ctx context.Context, store es.Store, sequence uint64) (es.Head, error) {
	if sequence == 0 {
		return es.Head{}, nil
	}
	m, err := store.Get(ctx, sequence)
	if errors.Is(err, es.ErrNotFound) {
		return es.Head{}, errors.Mark(errors.Wrapf(err, "event %d is missing in the stream", sequence), es.ErrBrokenChain)
	}
	if err != nil {
		return es.Head{}, err
	}
	h := es.Head{Sequence: sequence}
	if values := m.Header[es.HeaderHash]; len(values) == 1 {
		if h.Hash, err = es.ParseHash(values[0]); err == nil {
			return h, nil
		}
	}
	return es.Head{}, errors.Mark(errors.Newf("event %d on %s carries no hash", sequence, m.Subject), es.ErrBrokenChain)
}

// read is the one reader of the stream. It gives errors marked [es.ErrBrokenChain].
func (r *Runner) read(ctx context.Context, head es.Head) error {
	pace := newPace()
	for {
		var failure error
		for m, err := range es.VerifyChain(&head, r.cfg.Store.Follow(ctx, head.Sequence)) {
			if err != nil {
				failure = err
				break
			}
			r.hand(ctx, newItem(r.cfg.Registry, m, head))
		}
		switch {
		case errors.Is(failure, es.ErrBrokenChain):
			return failure
		case ctx.Err() != nil:
			return nil
		}
		r.cfg.Logger.Warn("the projector can't follow the stream; it tries again", "after", head.Sequence, "reason", failure)
		if !pace.wait(ctx, maxPause) {
			return nil
		}
	}
}

func newItem(registry *es.Registry, m es.Message, head es.Head) *item {
	e, err := registry.Decode(m)
	return &item{head: head, event: e, err: err}
}

// hand gives an event to every view that is attached.
func (r *Runner) hand(ctx context.Context, it *item) {
	r.mu.Lock()
	r.handed = it.head.Sequence
	r.tail = max(r.tail, r.handed)
	attached := r.attached
	r.mu.Unlock()
	for _, a := range attached {
		select {
		case a.feed <- it:
		case <-a.gone:
		case <-ctx.Done():
			return
		}
	}
}

// attach gives a view a place at the reader, which hands it every event after the one returned.
func (r *Runner) attach() (*attachment, uint64) {
	a := &attachment{feed: make(chan *item, feedEvents), gone: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attached = append(slices.Clone(r.attached), a)
	return a, r.handed
}

func (r *Runner) detach(a *attachment) {
	close(a.gone)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attached = slices.DeleteFunc(slices.Clone(r.attached), func(other *attachment) bool { return other == a })
}

// readTo is the last event the reader has handed out.
func (r *Runner) readTo() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handed
}

// Position tells how far a view has come. It gives errors for a view the runner does not have.
func (r *Runner) Position(view string) (Progress, error) {
	for _, w := range r.workers {
		if w.name == view {
			return w.track.get(), nil
		}
	}
	return Progress{}, r.unknown(view)
}

// Wait returns when the named views, all when none is named, have passed an event: their positions then say which bucket
// revision shows what the event has led to, also when it led to nothing. It gives errors marked [ErrStopped] when a view
// has stopped before the event or the runner has ended, and the context's; the positions of the views that have passed
// the event are given beside the error.
func (r *Runner) Wait(ctx context.Context, event uint64, views ...string) (map[string]Progress, error) {
	waited := r.workers
	if len(views) > 0 {
		waited = nil
		for _, view := range views {
			at := slices.IndexFunc(r.workers, func(w *worker) bool { return w.name == view })
			if at < 0 {
				return nil, r.unknown(view)
			}
			waited = append(waited, r.workers[at])
		}
	}
	passed := make(map[string]Progress, len(waited))
	var failure error
	for _, w := range waited {
		p, err := w.track.wait(ctx, w.name, event)
		if err != nil {
			failure = errors.CombineErrors(failure, err)
			continue
		}
		passed[w.name] = p
	}
	return passed, failure
}

func (r *Runner) unknown(view string) error {
	names := make([]string, len(r.workers))
	for i, w := range r.workers {
		names[i] = w.name
	}
	return errors.Newf("the projector has no view %q; it has %v", view, names)
}
