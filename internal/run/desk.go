package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/desk"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/internal/topology"
)

// serveDesk answers agents, from when it has read what they are told until the context ends.
func serveDesk(ctx context.Context, nc *nats.Conn, generations *natskv.Generations, watch *projectorWatch, events es.Store, now func() time.Time, log *slog.Logger, serves func()) error {
	views, err := natskv.OpenKeyValue(ctx, nc, topology.BucketViews)
	if err != nil {
		return stoppedBy(ctx, err)
	}
	index := desk.NewIndex()
	tasks := map[string]func(context.Context) error{}
	var read []chan struct{}
	for view, take := range map[string]func(uint64, []byte) error{
		topology.BucketAssignments: index.TakeAssignment, topology.BucketNodes: index.TakeNode, topology.BucketModules: index.TakeModule,
	} {
		f := &followed{nc: nc, generations: generations, views: views, view: view, take: take, read: make(chan struct{}), log: log}
		read = append(read, f.read)
		tasks[view] = f.run
	}
	tasks[""] = func(ctx context.Context) error {
		for _, whole := range read {
			select {
			case <-whole:
			case <-ctx.Done():
				return nil
			}
		}
		d := desk.Desk{Index: index, Presence: desk.NewPresence(now)}
		service, err := desk.Serve(ctx, desk.Config{Conn: nc, Desk: d, Version: Version(), Trace: watch.traceOf(events), Logger: log})
		watch.desk.Store(&d)
		return untilStopped(ctx, service, err, serves)
	}
	return Together(ctx, tasks)
}

// followed is a view that is read as it is written, whichever generation of its bucket that is in.
type followed struct {
	nc          *nats.Conn
	generations *natskv.Generations
	views       *natskv.KeyValue
	view        string
	take        func(source uint64, value []byte) error
	// read is closed when all that stands was read once.
	read chan struct{}
	log  *slog.Logger
}

func (f *followed) run(ctx context.Context) error {
	whole := f.read
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
		err = f.generation(reading, p.Bucket, func() {
			if whole != nil {
				close(whole)
				whole = nil
			}
		})
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

// generation reads all that stands in a bucket, says so, and goes on with what comes.
func (f *followed) generation(ctx context.Context, bucket string, whole func()) error {
	b, err := natskv.Open(ctx, f.nc, bucket)
	if err != nil {
		return err
	}
	state, err := b.State(ctx)
	if err != nil {
		return err
	}
	for e, err := range b.Entries(ctx) {
		if err := f.entry(e, err); err != nil {
			return err
		}
	}
	whole()
	for e, err := range b.Follow(ctx, state.Last) {
		if err := f.entry(e, err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// entry takes a value. One that can't be read is passed over: of it agents are told nothing, and it is for the views to be mended.
func (f *followed) entry(e project.Entry, err error) error {
	switch {
	case errors.Is(err, project.ErrForeign):
	case err != nil:
		return err
	case project.IsParkedKey(e.Key):
		return nil
	default:
		err = f.take(e.Meta.Source.Sequence, e.Value)
	}
	if err != nil {
		f.log.Error("agents are not told of a value that can't be read", "bucket", f.view, "key", e.Key, "revision", e.Revision, "error", err)
	}
	return nil
}
