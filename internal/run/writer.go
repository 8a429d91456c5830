package run

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/aggregates"
	"catenary/audit"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/failpoint"
	"catenary/internal/guard"
	"catenary/internal/room"
	"catenary/internal/topology"
)

// insideName is who acts on calls from inside the ledger's account that do not say.
const insideName = "catenary"

// WriterConfig is what a writer's process is told.
type WriterConfig struct {
	// Streams are the limits of the streams the writer owns.
	Streams topology.Options
	// Durability is that of the event stream.
	Durability dispatch.Durability
	// SnapshotEvery is how many events may come before the next snapshot. Default: that of es/dispatch.
	SnapshotEvery int
	// DiscardSnapshots reads the whole event stream once more.
	DiscardSnapshots bool
	// Accept goes on although the stream has lost events, and records so.
	Accept *AcceptedLoss
	// AuditFile is an audit store within reach. It is asked too how far the stream had come: it is no part of the server's store, and
	// does not come back from yesterday with it. Empty means that there is none here.
	AuditFile string
	// Room tells how full the store is; the writer keeps it up to date while it runs, and appends nothing while the disk is full. Nil makes
	// one over the writer's own connection, which knows nothing of the disk.
	Room *room.Watch
	// EraseCopies erases what copies of the actor directory hold at a sequence. It may be nil.
	EraseCopies func(ctx context.Context, sequence uint64) error
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger is the process's log. Default: slog.Default().
	Logger *slog.Logger
	// Ready is called when commands are taken for the first time. It may be nil.
	Ready func()
	// Monitor is told how the writer is.
	Monitor Monitor
	// Alone says that no other writer can be at work: this one begins at once, without waiting for the turn of one that was
	// killed to expire.
	Alone bool
	// Contend begins at once and never gives way, whoever else is at work. That is safe, but slow when there are two: it is
	// for tests of just that.
	Contend bool
}

// Writer runs a writer over a connection in the ledger's account until the context ends. It makes or checks the event stream, the actor
// directory and the baton first, and refuses a stream that its witnesses contradict. Of several writers one works; the others stand by,
// follow the stream, and one of them takes over when the first is gone. It gives [ErrConnectionClosed], [ErrContradicted], the errors of
// natsstore.Ensure and natskv.Ensure, and why the writer can't go on.
func Writer(ctx context.Context, nc *nats.Conn, c WriterConfig) error {
	if c.Now == nil {
		c.Now = failpoint.Clock(time.Now)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	ready := c.Ready
	if ready == nil {
		ready = func() {}
	}
	p := &writerPart{
		nc: nc, cfg: c, log: c.Logger.With("component", "writer"), ready: sync.OnceFunc(ready), watch: newWriterWatch(c.Monitor), compared: make(chan struct{}),
	}
	defer p.watch.end()
	if err := p.prepare(ctx); err != nil {
		return stoppedBy(ctx, err)
	}
	defer p.store.Close()
	if err := p.keepers(); err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrap(err, "look at the event stream")
	}
	defer p.watch.lookAtStore(js)()
	defer p.watch.lookAtRoom(p.cfg.Room)()
	defer p.watch.lookAtGuard(p.guard)()
	return Together(ctx, map[string]func(context.Context) error{
		"":           p.turns,
		"connection": func(ctx context.Context) error { return c.Monitor.awaitClosed(ctx, "writer bus", nc) },
		// It needs no writer, so those that stand by serve it too: commands are kept also while one takes over.
		// A projector that is stuck can't say how far it is behind; with this, whoever asks in vain can.
		"tail service": func(ctx context.Context) error {
			service, err := audit.ServeTail(nc, audit.Config{Store: p.store, Version: Version(), Logger: p.log})
			return untilStopped(ctx, service, err, func() {})
		},
		"inbox service":    p.serveInbox,
		"store service":    p.serveStore,
		"room":             p.cfg.Room.Run,
		"guard":            func(ctx context.Context) error { return p.afterCheck(ctx, p.guard.Run) },
		"refused commands": p.refused.log.Run,
		"actors":           p.followActors,
	})
}

// keepers makes what looks after the store.
func (p *writerPart) keepers() (err error) {
	if p.cfg.Room == nil {
		if p.cfg.Room, err = room.New(room.Config{Conn: p.nc, Now: p.cfg.Now, Logger: p.log}); err != nil {
			return err
		}
	}
	p.guard, err = guard.New(guard.Config{Conn: p.nc, Streams: p.cfg.Streams, Now: p.cfg.Now, Logger: p.log})
	return err
}

// followActors takes out of this process's memory whoever another has erased.
func (p *writerPart) followActors(ctx context.Context) error {
	err := p.directory.Follow(ctx, p.intake.Actors)
	if p.nc.IsClosed() {
		<-ctx.Done() // the watch went with the connection, whose end has its own report
		return nil
	}
	return err
}

// writerPart is a writer's process, over all its turns.
type writerPart struct {
	nc    *nats.Conn
	cfg   WriterConfig
	log   *slog.Logger
	ready func()
	// compared is closed when the stream was compared with its witnesses for the first time: who looks after it begins then, so that what was
	// lost before the start is told by the start.
	compared chan struct{}
	once     sync.Once
	store    *natsstore.Store
	// snapshots are those of the writer's world.
	snapshots *natsstore.Snapshots
	directory *dispatch.BucketDirectory
	intake    *dispatch.Intake
	refused   refusals
	inbox     *dispatch.InboxStore
	actor     string
	baton     *dispatch.Baton // nil for one that contends
	guard     *guard.Watch
	watch     *writerWatch
}

func (p *writerPart) prepare(ctx context.Context) error {
	err := withOthers(ctx, func(ctx context.Context) (err error) {
		if err = prepareWriter(ctx, p.nc, p.cfg.Streams); err != nil {
			return err
		}
		if p.inbox, err = openInbox(ctx, p.nc, p.cfg.Streams); err != nil {
			return err
		}
		p.refused.store, err = dispatch.OpenRefused(ctx, p.nc, topology.Refused(p.cfg.Streams))
		return err
	})
	if err != nil {
		return err
	}
	if err := p.openIntake(ctx); err != nil {
		return err
	}
	if p.actor, err = p.intake.Actors.ID(ctx, dispatch.Who{Name: insideName}); err != nil {
		return err
	}
	if !p.cfg.Contend {
		p.baton, err = dispatch.OpenBaton(ctx, dispatch.BatonConfig{
			Conn: p.nc, Bucket: topology.BucketBaton, Key: topology.BatonWriter, Name: processName(), Seize: p.cfg.Alone, StandsBy: p.watch.standsBy, Logger: p.log,
		})
		if err != nil {
			return err
		}
	}
	if p.snapshots, err = natsstore.OpenSnapshots(ctx, p.nc, natsstore.Config{}); err != nil {
		return err
	}
	if p.store, err = natsstore.Open(ctx, p.nc, natsstore.Config{}); err != nil {
		return err
	}
	return nil
}

// discardAsked discards the snapshots, once, if that was asked for. They are witnesses too, so they are asked first.
func (p *writerPart) discardAsked(ctx context.Context) error {
	if !p.cfg.DiscardSnapshots {
		return nil
	}
	p.log.Warn("discarding the snapshots, as told")
	if err := p.snapshots.Discard(ctx); err != nil {
		return err
	}
	p.cfg.DiscardSnapshots = false
	return nil
}

// checked makes sure that the stream is the one that was recorded. With a loss that was accepted it gives what is to be recorded, and
// discards the snapshots, which rest on what was lost.
func (p *writerPart) checked(ctx context.Context) (loss *events.WriterLossAccepted, err error) {
	err = withOthers(ctx, func(ctx context.Context) error {
		all, err := witnesses(ctx, p.nc, p.snapshots)
		if err != nil {
			return err
		}
		all = append(all, auditWitness(ctx, p.cfg.AuditFile, p.log)...)
		loss, err = askWitnesses(ctx, p.nc, p.store, all, p.cfg.Accept)
		return err
	})
	if err == nil {
		p.once.Do(func() { close(p.compared) })
	}
	if err != nil || loss == nil {
		return nil, err
	}
	p.log.Warn("going on although events are lost, as told", "found", loss.Found, "reason", loss.Reason)
	return loss, p.snapshots.Discard(ctx)
}

// processName tells people which process it is.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

// turns takes turn after turn until the context ends.
func (p *writerPart) turns(ctx context.Context) error {
	for {
		err := p.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, dispatch.ErrBatonLost):
			return err
		}
		p.log.Warn("standing down", "reason", err)
		p.watch.fenced(err)
	}
}

// turn stands by until it is this process's turn, and then works until the context ends or another process takes over. It gives
// errors marked dispatch.ErrBatonLost, and why the writer can't go on.
func (p *writerPart) turn(ctx context.Context) error {
	loss, err := p.checked(ctx)
	if err == nil {
		err = p.discardAsked(ctx)
	}
	if err != nil {
		return err
	}
	writer, err := p.newWriter(loss)
	if err != nil {
		return err
	}
	if p.baton == nil {
		return p.work(ctx, writer, untilEnd)
	}
	if err := p.standBy(ctx, writer); err != nil {
		return err
	}
	if loss == nil {
		// It may have stood by for long.
		if loss, err = p.checked(ctx); err != nil {
			return err
		}
		if loss != nil {
			return errors.Mark(errors.Newf("%s: it lost events while this writer stood by; start it again", ErrContradicted), ErrContradicted)
		}
	}
	err = p.hold(ctx, writer)
	if ctx.Err() != nil {
		// The baton is released: nobody waits for this.
		writer.Keep(context.WithoutCancel(ctx))
	}
	return err
}

// hold works with the baton, which is kept until all work has ended, so that nobody begins in the middle of it.
func (p *writerPart) hold(ctx context.Context, writer *dispatch.Writer) error {
	keeping, release := context.WithCancel(context.WithoutCancel(ctx))
	lost := make(chan error, 1)
	var kept sync.WaitGroup
	kept.Go(func() { lost <- p.baton.Keep(keeping) })
	defer kept.Wait()
	defer release()
	return p.work(ctx, writer, func(ctx context.Context) error {
		select {
		case err := <-lost:
			return err
		case <-ctx.Done():
			return nil
		}
	})
}

func untilEnd(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// standBy waits for the baton, while the writer's world keeps up with the stream.
func (p *writerPart) standBy(ctx context.Context, writer *dispatch.Writer) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	followed := make(chan error, 1)
	go func() {
		defer stop() // one that does not understand the stream must not take over
		followed <- writer.Follow(following)
	}()
	taken := p.baton.Take(following)
	stop()
	if err := <-followed; err != nil {
		return err
	}
	return taken
}

// work runs the writer and its service until the context or the turn ends.
func (p *writerPart) work(ctx context.Context, writer *dispatch.Writer, turn func(context.Context) error) error {
	// The writer outlives what commands come from, so that every command that was taken in gets its answer.
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer p.watch.beats()()
	var sources atomic.Int32
	sources.Store(2)
	ended := func() {
		if sources.Add(-1) == 0 {
			stop()
		}
	}
	return Together(ctx, map[string]func(context.Context) error{
		"": func(ctx context.Context) error {
			err := writer.Run(writing)
			if err == nil && writing.Err() != nil {
				<-ctx.Done() // why it had to end is for the service to say
			}
			return err
		},
		"turn":  turn,
		"doubt": func(ctx context.Context) error { return p.doubt(ctx, writer) },
		"event stream": func(ctx context.Context) error {
			select {
			case <-writer.Ready():
				return scrub(ctx, p.store, p.log)
			case <-ctx.Done():
				return nil
			}
		},
		"command service": func(ctx context.Context) error {
			defer ended()
			return p.serve(ctx, writer)
		},
		"inbox": func(ctx context.Context) error {
			defer ended()
			return p.workInbox(ctx, writer)
		},
	})
}

// afterCheck runs a task when the stream was compared with its witnesses.
func (p *writerPart) afterCheck(ctx context.Context, task func(context.Context) error) error {
	select {
	case <-p.compared:
		return task(ctx)
	case <-ctx.Done():
		return nil
	}
}

// doubt makes the writer look whether the stream is still the one it knows, whenever the connection was made again: the server may have come
// back with yesterday's state.
func (p *writerPart) doubt(ctx context.Context, writer *dispatch.Writer) error {
	status := p.nc.StatusChanged(nats.CONNECTED)
	defer p.nc.RemoveStatusListener(status)
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-status:
			if !open {
				<-ctx.Done() // the connection is closed for good, which has its own report
				return nil
			}
			writer.Doubt()
		}
	}
}

// stoppedBy gives nil when a step failed only because the process is told to stop.
func stoppedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// openIntake opens the actor directory, and what rests on it.
func (p *writerPart) openIntake(ctx context.Context) error {
	js, err := jetstream.New(p.nc)
	if err != nil {
		return errors.Wrap(err, "open the actor directory")
	}
	if p.directory, err = dispatch.OpenDirectory(ctx, js, topology.BucketActors); err != nil {
		return err
	}
	p.directory.EraseCopies = p.cfg.EraseCopies
	// A random id: one with a time would tell when a person was first seen, also after they were erased.
	actors, err := dispatch.NewActors(ctx, p.directory, uuid.NewString)
	if err != nil {
		return err
	}
	p.refused.log = dispatch.NewRefusedLog(p.refused.store, actors, p.cfg.Now, p.log)
	p.intake = &dispatch.Intake{Decoder: commands.Commands(), Actors: actors, Erase: p.refused.store.Erase, Permit: permit, NewID: newID, Logger: p.log}
	return nil
}

// newWriter makes the writer of a turn, which records a loss that was accepted.
func (p *writerPart) newWriter(loss *events.WriterLossAccepted) (*dispatch.Writer, error) {
	rules := aggregates.Config{}
	if _, err := aggregates.NewWorld(rules); err != nil {
		return nil, err
	}
	return dispatch.NewWriter(dispatch.Config{
		Store:    room.Gate{Store: p.store, Watch: p.cfg.Room},
		Registry: events.Registry(),
		NewModel: func() es.Decider {
			world, err := aggregates.NewWorld(rules)
			if err != nil {
				panic(err) // the same configuration was taken a moment ago
			}
			return decider(world)
		},
		Start: commands.StartWriter{WriterStarted: events.WriterStarted{
			ID: newID(), Program: Version(), Rules: aggregates.RulesVersion,
		}, Loss: loss},
		Snapshots: p.snapshots, SnapshotEvery: p.cfg.SnapshotEvery, Now: p.cfg.Now, NewID: newID, Actor: p.actor, Durability: p.cfg.Durability,
		Watch: p.watch.tells(), Logger: p.log,
	})
}

// serve answers commands from when the writer is ready until the context ends.
func (p *writerPart) serve(ctx context.Context, writer *dispatch.Writer) error {
	select {
	case <-writer.Ready():
	case <-ctx.Done():
		return nil
	}
	var known []string
	for _, v := range commands.Commands().Verbs() {
		known = append(known, v.Aggregate+"."+v.Verb)
	}
	service, err := dispatch.NewService(ctx, dispatch.ServiceConfig{
		Name: topology.WriterService, Version: Version(), Conn: p.nc, Intake: p.intake, Offer: p.watch.offer(writer.Offer),
		Inside: insideName, Refused: p.refused.log, Commands: known, Logger: p.log,
	})
	if err != nil {
		return err
	}
	// Ready means that the server knows of the service, too.
	if err = p.nc.Flush(); err == nil {
		p.log.Info("commands are taken")
		ended := p.watch.takesCommands(writer)
		p.ready()
		<-ctx.Done()
		ended()
	}
	err = errors.CombineErrors(stoppedBy(ctx, err), service.Stop())
	if p.nc.IsClosed() {
		// The subscriptions went with the connection, whose end has its own report.
		return nil
	}
	return err
}

// newID gives a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
