package run

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/desk"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/project"
)

// followedViews are the views that agents are told of.
type followedViews []*followed

// current returns when all that stood when it was called was read. It gives errors marked [project.ErrStopped] and [es.ErrUnavailable], and
// the context's.
func (all followedViews) current(ctx context.Context, runner *project.Runner, events es.Store) error {
	tail, err := events.Tail(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		if err := f.awaitPassed(ctx, runner, tail); err != nil {
			return err
		}
	}
	return nil
}

// awaitPassed returns when what an event has led to was read. It gives what current does.
func (f *followed) awaitPassed(ctx context.Context, runner *project.Runner, event uint64) error {
	for {
		passed, err := runner.Wait(ctx, event, f.view)
		if err != nil {
			return err
		}
		at, same := passed[f.view], false
		err = f.await(ctx, func(p followedPlace) bool {
			same = p.bucket == cmp.Or(at.Bucket, f.view)
			return !same || p.revision >= at.Revision
		})
		if err != nil || same {
			return err
		}
		// One of the two has moved to another generation, and the other will.
		select {
		case <-time.After(moveLook):
		case <-ctx.Done():
		}
	}
}

// moveLook is how often it is looked whether both read the same generation.
const moveLook = 20 * time.Millisecond

// followed is a view that is read as it is written, whichever generation of its bucket that is in.
type followed struct {
	nc          *nats.Conn
	generations *natskv.Generations
	views       *natskv.KeyValue
	view        string
	take        func(desk.Value) error
	// replace takes all that stands in a generation, in the place of what was taken before.
	replace func([]desk.Value) error
	log     *slog.Logger

	mu    sync.Mutex
	place *followedPlace
	moved chan struct{} // closed, and made anew, when the place is another one
}

// followedPlace is how far a view was read: a bucket, and a revision of it.
type followedPlace struct {
	bucket   string
	revision uint64
}

// move notes how far the view was read.
func (f *followed) move(to followedPlace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.place = &to
	close(f.moved)
	f.moved = make(chan struct{})
}

// await returns when all that stood in a bucket was read once, and the place is one that is waited for. It gives the context's errors.
func (f *followed) await(ctx context.Context, is func(followedPlace) bool) error {
	for {
		f.mu.Lock()
		place, moved := f.place, f.moved
		f.mu.Unlock()
		if place != nil && is(*place) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "read %s", f.view)
		}
	}
}

func (f *followed) run(ctx context.Context) error {
	for ctx.Err() == nil {
		p, err := f.generations.Pointer(ctx, f.view)
		if err != nil {
			return stoppedBy(ctx, err)
		}
		reading, leave := context.WithCancel(ctx)
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			f.awaitMove(reading, p)
			leave()
		}()
		err = f.generation(reading, p.Bucket)
		ended := reading.Err() != nil
		leave()
		<-moved
		if err != nil && !ended {
			return errors.Wrapf(err, "follow %s", f.view)
		}
		if f.nc.IsClosed() {
			<-ctx.Done() // the reading went with the connection, whose end has its own report
		}
	}
	return nil
}

// awaitMove returns when readers are sent to another bucket than the pointer names, or the context ends.
func (f *followed) awaitMove(ctx context.Context, at project.Pointer) {
	for record, err := range f.views.Watch(ctx, f.view) {
		if err != nil {
			f.log.Warn("where a view is read can't be watched; looking again", "view", f.view, "error", err)
			return
		}
		next, err := project.ParsePointer(f.view, record.Value, record.Revision)
		if err != nil {
			f.log.Error("a pointer can't be read", "view", f.view, "error", err)
			continue
		}
		if next.Bucket != at.Bucket {
			return
		}
	}
}

// generation reads all that stands in a bucket, and goes on with what comes.
func (f *followed) generation(ctx context.Context, bucket string) error {
	b, err := natskv.Open(ctx, f.nc, bucket)
	if err != nil {
		return err
	}
	state, err := b.State(ctx)
	if err != nil {
		return err
	}
	var standing []desk.Value
	for e, err := range b.Entries(ctx) {
		switch ok, err := f.readable(e, err); {
		case err != nil:
			return err
		case ok:
			standing = append(standing, desk.Value{Source: e.Meta.Source.Sequence, Record: e.Value})
		}
	}
	f.passOver(bucket, f.replace(standing))
	f.move(followedPlace{bucket, state.Last})
	for e, err := range b.Follow(ctx, state.Last) {
		ok, err := f.readable(e, err)
		if err != nil {
			return err
		}
		if ok {
			f.passOver(bucket, f.take(desk.Value{Source: e.Meta.Source.Sequence, Record: e.Value}))
		}
		f.move(followedPlace{bucket, e.Revision})
	}
	return ctx.Err()
}

// readable says whether an entry is a value that agents may be told of. What no projector wrote is passed over.
func (f *followed) readable(e project.Entry, err error) (bool, error) {
	if errors.Is(err, project.ErrForeign) {
		f.passOver(f.view, errors.Wrapf(err, "key %s, revision %d", e.Key, e.Revision))
		return false, nil
	}
	return err == nil && !project.IsParkedKey(e.Key), err
}

// passOver says that there are values that can't be read: of them agents are told nothing, and it is for the views to be mended.
func (f *followed) passOver(bucket string, err error) {
	if err != nil {
		f.log.Error("agents are not told of a value that can't be read", "bucket", bucket, "error", err)
	}
}
