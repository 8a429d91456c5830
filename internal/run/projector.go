package run

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/audit/proof"
	"catenary/audit/store"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/failpoint"
	"catenary/internal/guard"
	"catenary/internal/mirrors"
	"catenary/internal/topology"
	"catenary/projections"
)

// statusPatience bounds the look at the stream's tail that a position comes with.
const statusPatience = time.Second

// ProjectorConfig is what a projector's process is told.
type ProjectorConfig struct {
	// Streams are the limits of the buckets the projector owns.
	Streams topology.Options
	// Copies keeps the copies of buckets that people read, so that they are sent to a new generation only when its copy is there.
	// Nil where nobody keeps any.
	Copies natskv.Copies
	// Mirrors is a connection of the mirrors user, with which the projector makes and keeps the copies itself. Nil where somebody else does,
	// or nobody.
	Mirrors *nats.Conn
	// Proofs says how checkpoints are signed.
	Proofs ProofConfig
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// AuditFile is where the audit store is kept. Empty means that there is none.
	AuditFile string
	// Logger is the process's log. Default: slog.Default().
	Logger *slog.Logger
	// Ready is called when every service of the projector answers: queries, proofs, logs, artifacts and nodes. It may be nil.
	Ready func()
	// Guards says that the streams are guarded here too. It is for a projector in a process of its own: a writer ends when events are missing,
	// and nobody else would tell.
	Guards bool
	// Monitor is told how the projector is.
	Monitor Monitor
}

// Projector runs a projector and its services over a connection in the ledger's account until the context ends. It makes or checks the
// buckets first; the event stream MUST be there. With a file for it, it keeps the audit store too. A view that can't go on stops alone, with
// its reason in the log and in every answer about positions. It gives [ErrConnectionClosed], and why the projector can't go on.
func Projector(ctx context.Context, nc *nats.Conn, c ProjectorConfig) error {
	if c.Now == nil {
		c.Now = failpoint.Clock(time.Now)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	p := &projectorPart{nc: nc, cfg: c, log: c.Logger.With("component", "projector"), watch: newProjectorWatch(c.Monitor), registry: events.Registry()}
	defer p.watch.end()
	defer p.close()
	if err := p.prepare(ctx); err != nil {
		return stoppedBy(ctx, err)
	}
	p.watch.runner, p.watch.proofs, p.watch.past = p.runner, p.proofs, p.past
	p.watch.looks()
	if p.guard != nil {
		defer c.Monitor.lookAtGuard(p.guard)()
	}
	return Together(ctx, p.tasks())
}

// projectorPart is a projector's process.
type projectorPart struct {
	nc          *nats.Conn
	cfg         ProjectorConfig
	log         *slog.Logger
	watch       *projectorWatch
	registry    *es.Registry
	store       *natsstore.Store
	generations *natskv.Generations
	runner      *project.Runner
	proofs      *proof.Log
	past        *store.Store     // nil without one
	guard       *guard.Watch     // nil where a writer of this process guards
	copies      *mirrors.Mirrors // nil where somebody else keeps them
	behind      mirrors.Targets
}

// prepare makes or checks what the projector owns, and makes its parts.
func (p *projectorPart) prepare(ctx context.Context) error {
	if err := prepareProjector(ctx, p.nc, p.cfg.Streams); err != nil {
		return err
	}
	if err := prepareBulk(ctx, p.nc, p.cfg.Streams); err != nil {
		return err
	}
	var err error
	if p.store, err = natsstore.Open(ctx, p.nc, natsstore.Config{}); err != nil {
		return err
	}
	if p.cfg.Mirrors != nil {
		if p.copies, p.behind, err = trueMirrors(ctx, p.nc, p.cfg.Mirrors, p.cfg.Streams, p.log); err != nil {
			return err
		}
		p.cfg.Copies = p.copies
	}
	if p.generations, err = natskv.OpenGenerations(ctx, p.nc, p.cfg.Streams, p.cfg.Copies); err != nil {
		return err
	}
	if p.runner, err = p.newRunner(ctx); err != nil {
		return err
	}
	if p.proofs, err = p.newProofs(ctx); err != nil {
		return err
	}
	if p.cfg.Guards {
		if p.guard, err = guard.New(guard.Config{Conn: p.nc, Streams: p.cfg.Streams, Now: p.cfg.Now, Logger: p.log}); err != nil {
			return err
		}
	}
	if p.cfg.AuditFile != "" {
		p.past, err = p.newAuditStore()
	}
	return err
}

func (p *projectorPart) close() {
	if p.store != nil {
		p.store.Close()
	}
}

// newRunner makes what folds the views.
func (p *projectorPart) newRunner(ctx context.Context) (*project.Runner, error) {
	specs, err := project.Specs(projections.All, nil)
	if err != nil {
		return nil, err
	}
	marks, err := natskv.OpenKeyValue(ctx, p.nc, topology.BucketMarks)
	if err != nil {
		return nil, err
	}
	return project.New(project.Config{
		Store: p.store, Registry: p.registry, Views: specs, Marks: marks, Generations: p.generations, Orders: projections.Orders(), Losses: projections.Losses(),
		Logger: p.log, Clock: p.cfg.Now, Trace: p.cfg.Monitor.traceViews(),
	})
}

// tasks are what runs until the projector ends.
func (p *projectorPart) tasks() map[string]func(context.Context) error {
	tasks := map[string]func(context.Context) error{
		"":           p.runner.Run,
		"proofs":     p.proofs.Run,
		"connection": func(ctx context.Context) error { return p.cfg.Monitor.awaitClosed(ctx, "projector bus", p.nc) },
	}
	services := map[string]func(ctx context.Context, serves func()) error{
		"proof service": p.serveProofs, "logs service": p.serveLogs, "depot": p.serveDepot, "nodes service": p.serveDesk, "query service": p.serveQueries,
	}
	serves := whenAll(len(services), p.watch.ready(p.cfg.Ready))
	for name, serve := range services {
		tasks[name] = func(ctx context.Context) error { return serve(ctx, serves) }
	}
	if p.copies != nil {
		tasks["connection of the mirrors"] = func(ctx context.Context) error { return awaitClosed(ctx, p.cfg.Mirrors) }
		tasks["mirrors"] = p.seeMirrorsFollow
	}
	if p.guard != nil {
		tasks["guard"] = p.guard.Tell
	}
	if p.past != nil {
		tasks["audit store"] = p.past.Run
	}
	return tasks
}

// trueMirrors gives what keeps the mirrors, after all of them are true, and how far each has to come: nothing is written into the buckets before. The
// buckets are there, but for what a writer makes at its start.
func trueMirrors(ctx context.Context, ledger, ops *nats.Conn, options topology.Options, log *slog.Logger) (*mirrors.Mirrors, mirrors.Targets, error) {
	m, err := mirrors.New(ledger, ops, options, log)
	if err != nil {
		return nil, nil, err
	}
	behind, err := m.True(ctx)
	if errors.Is(err, mirrors.ErrNoBucket) {
		err = errors.WithHint(err, "start the writer first: it makes what is missing")
	}
	return m, behind, err
}

// seeMirrorsFollow says so when a mirror does not follow its bucket. It returns when the context ends: views go on without their mirrors.
func (p *projectorPart) seeMirrorsFollow(ctx context.Context) error {
	for {
		err := p.copies.Follows(ctx, p.behind)
		if err == nil {
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.log.Warn("a copy does not follow its bucket: readers of copies see what was", "reason", err)
		select {
		case <-time.After(followPause):
		case <-ctx.Done():
		}
	}
}

// followPause is how long after a failure the mirrors are looked at again.
const followPause = 5 * time.Second

// presentBucket gives the generation of a view's bucket that is read.
func presentBucket(ctx context.Context, nc *nats.Conn, generations *natskv.Generations) func(view string) (project.Bucket, error) {
	return func(view string) (project.Bucket, error) {
		p, err := generations.Pointer(ctx, view)
		if err != nil {
			return nil, err
		}
		return natskv.Open(ctx, nc, p.Bucket)
	}
}

// Verify checks the stream and every bucket over a connection in the ledger's account, where no projector runs: a bucket
// that is behind stays so and is reported.
func Verify(ctx context.Context, nc *nats.Conn, options topology.Options) (project.Report, error) {
	store, err := natsstore.Open(ctx, nc, natsstore.Config{})
	if err != nil {
		return project.Report{}, err
	}
	defer store.Close()
	generations, err := natskv.OpenGenerations(ctx, nc, options, nil)
	if err != nil {
		return project.Report{}, err
	}
	report, err := project.Verify(ctx, project.Verification{
		Store: store, Registry: events.Registry(), NewViews: projections.All, Orders: projections.Orders(), Patience: time.Millisecond,
		Bucket: presentBucket(ctx, nc, generations),
	})
	return report, orHoles(ctx, nc, err)
}

// orHoles says why the stream could not be read to its end, if events are missing there: a server that has lost them gives none, and no error.
func orHoles(ctx context.Context, nc *nats.Conn, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if holes := AskForHoles(ctx, nc); errors.Is(holes, es.ErrBrokenChain) {
		return errors.WithSecondaryError(holes, err)
	}
	return err
}

// serveQueries answers questions until the context ends.
func (p *projectorPart) serveQueries(ctx context.Context, serves func()) error {
	c := audit.Config{
		Store: p.store, Registry: p.registry, Version: Version(), Logger: p.log, Rebuild: p.runner.Rebuild,
		Positions: func(ctx context.Context, sequence uint64) ([]audit.ViewPosition, uint64, error) {
			return positions(ctx, p.runner, sequence)
		},
		Projections: func(ctx context.Context) (project.Status, error) {
			looking, cancel := context.WithTimeout(ctx, statusPatience)
			defer cancel()
			return p.runner.Status(looking), nil
		},
		Verify: func(ctx context.Context, read es.Store) (project.Report, error) {
			return project.Verify(ctx, project.Verification{
				Store: read, Registry: p.registry, NewViews: projections.All, Orders: projections.Orders(), Bucket: presentBucket(ctx, p.nc, p.generations),
			})
		},
	}
	if p.past != nil {
		c.Past = p.past
	}
	service, err := audit.Serve(p.nc, c)
	return untilStopped(ctx, service, err, serves)
}

// whenAll gives what each of so many services calls once when it answers: the last of them is who says that all are ready.
func whenAll(services int, ready func()) (serves func()) {
	var serving atomic.Int64
	return func() {
		if serving.Add(1) == int64(services) && ready != nil {
			ready()
		}
	}
}

// untilStopped lets a service that was started answer until the context ends.
func untilStopped(ctx context.Context, service interface{ Stop() error }, err error, serves func()) error {
	if err != nil {
		return stoppedBy(ctx, err)
	}
	serves()
	<-ctx.Done()
	return service.Stop()
}

// positions waits for a sequence, within the context, and then says how far each view is, and the stream.
func positions(ctx context.Context, runner *project.Runner, sequence uint64) ([]audit.ViewPosition, uint64, error) {
	if _, err := runner.Wait(ctx, sequence); err != nil && ctx.Err() == nil && !errors.Is(err, project.ErrStopped) {
		return nil, 0, err
	}
	// The time for waiting may be over; the positions are told all the same.
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusPatience)
	defer cancel()
	status := runner.Status(looking)
	var found []audit.ViewPosition
	for _, v := range status.Views {
		p := audit.ViewPosition{View: v.View, Bucket: cmp.Or(v.Position.Bucket, v.View), Event: v.Position.Event, Revision: v.Position.Revision, Parked: v.ParkedCount}
		switch v.State {
		case project.StateStopped:
			p.Stopped = v.Reason
		case project.StatePaused:
			p.Stopped, p.Paused = "paused: "+v.Paused.Reason, true
		case project.StateRebuilding:
			p.Rebuilding = true
		case project.StateRunning, project.StateCatchingUp, project.StateWaiting:
		}
		found = append(found, p)
	}
	return found, status.Tail, nil
}
