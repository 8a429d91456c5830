package project

import (
	"context"
	"sync"

	"github.com/cockroachdb/errors"
)

// ErrWorking means that a view is being worked on already, in another way than the one asked for. Ask again when that is done.
var ErrWorking = errors.New("the view is being worked on")

// ErrNoRoom means that the generation of another view is being built, and there is room for one at a time.
var ErrNoRoom = errors.New("there is room for one new generation at a time")

// RebuildOptions say how far a rebuild may go. The zero value mends in place what can be mended so, and builds a new generation
// otherwise.
type RebuildOptions struct {
	// InPlace forbids a new generation.
	InPlace bool `json:"in-place,omitempty"`
	// DryRun only says what would be done.
	DryRun bool `json:"dry-run,omitempty"`
	// Anew makes a new generation in any case.
	Anew bool `json:"anew,omitempty"`
}

// Rebuilt is what came of a rebuild.
type Rebuilt struct {
	View string `json:"view"`
	// Bucket is the name of the one that is read now.
	Bucket string `json:"bucket"`
	// Events counts the events that were folded afresh, as far as the bucket has come to them; Values the values that were given.
	Events uint64 `json:"events"`
	Values uint64 `json:"values,omitempty"`
	// Differences counts what differed from a fresh fold and was compared. It is zero when nothing was compared.
	Differences int `json:"differences,omitempty"`
	// Mends lists what was written again, or would be.
	Mends []Mend `json:"mends,omitempty"`
	// Anew says why mending in place is not enough; empty when it is.
	Anew string `json:"anew,omitempty"`
	// Generation is the new one, when one was made.
	Generation *Generation `json:"generation,omitempty"`
	// DryRun says that nothing was done.
	DryRun bool `json:"dry-run,omitempty"`
}

// OK says whether the bucket that is read now equals a fresh fold.
func (r Rebuilt) OK() bool {
	return !r.DryRun && (r.Anew == "" || r.Generation != nil) || r.Differences == 0 && r.Anew == ""
}

// Stage says what a rebuild is at.
type Stage string

// The stages of a rebuild.
const (
	// StageWaiting waits until another view's new generation is built, for which alone there is room.
	StageWaiting Stage = "waiting"
	// StageComparing folds afresh and compares.
	StageComparing Stage = "comparing"
	// StageBuilding fills a new generation.
	StageBuilding Stage = "building"
	// StageCopying waits until the copy that people read has what was built.
	StageCopying Stage = "copying"
	// StageSwitching hands the view over.
	StageSwitching Stage = "switching"
)

// WorkProgress is how far a rebuild is.
type WorkProgress struct {
	Stage Stage `json:"stage"`
	// Events is the last event folded, Tail the one it is to come to.
	Events uint64 `json:"events"`
	Tail   uint64 `json:"tail"`
}

// Work is a rebuild on its way. It goes on whoever asked for it and whether or not they wait. It is safe for concurrent use.
type Work struct {
	options RebuildOptions
	done    chan struct{}

	mu     sync.Mutex
	stage  Stage
	tail   uint64
	events func() uint64
	result Rebuilt
	err    error
}

// Progress tells how far it is.
func (k *Work) Progress() WorkProgress {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := WorkProgress{Stage: k.stage, Tail: k.tail}
	if k.events != nil {
		p.Events = k.events()
	}
	return p
}

// Done is closed when it has ended.
func (k *Work) Done() <-chan struct{} { return k.done }

// Result gives what came of it, after Done. Errors are marked [es.ErrUnavailable], [es.ErrFull], [ErrStopped] when the view can't
// fold an event, or [es.ErrBrokenChain]; nothing that is read has changed then, but for mending values that are right.
func (k *Work) Result() (Rebuilt, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.result, k.err
}

func (k *Work) at(stage Stage, tail uint64, events func() uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stage, k.tail, k.events = stage, tail, events
}

// works are the rebuilds of a runner, at most one of a view at a time. What is asked for before the runner runs waits.
type works struct {
	opened  chan struct{}
	ctx     context.Context // the runner's, once it is opened
	group   sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	running map[string]*Work
	room    chan struct{} // held by who builds a generation: there is room for one at a time
}

func newWorks() works {
	return works{opened: make(chan struct{}), running: map[string]*Work{}, room: make(chan struct{}, 1)}
}

// await waits for the room of a new generation, which leave gives back. It gives the context's error.
func (s *works) await(ctx context.Context) error {
	select {
	case s.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *works) leave() { <-s.room }

// Building counts the new generations that are being built: none or one.
func (r *Runner) Building() int { return len(r.works.room) }

// open lets the works begin. They end with the context.
func (s *works) open(ctx context.Context) {
	s.ctx = ctx
	close(s.opened)
}

// close lets none begin any more and waits for the others, whose context has ended.
func (s *works) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.group.Wait()
}

// begin gives the work that is done for the view already, if it does what is asked for, or begins it.
func (s *works) begin(view string, o RebuildOptions, do func(context.Context, *Work) (Rebuilt, error)) (*Work, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Mark(errors.Newf("rebuild view %s: the projector has ended", view), ErrStopped)
	}
	if k := s.running[view]; k != nil {
		// A new generation is more than anybody may want who would have the bucket whole.
		if k.options != o && (!k.options.Anew || o.InPlace || o.DryRun) {
			return nil, errors.Wrapf(ErrWorking, "rebuild view %s (it is %s)", view, k.Progress().Stage)
		}
		return k, nil
	}
	k := &Work{options: o, done: make(chan struct{}), stage: StageComparing}
	s.running[view] = k
	s.group.Go(func() {
		<-s.opened
		result, err := do(s.ctx, k)
		k.mu.Lock()
		k.result, k.err = result, err
		k.mu.Unlock()
		s.mu.Lock()
		delete(s.running, view)
		s.mu.Unlock()
		close(k.done)
	})
	return k, nil
}
