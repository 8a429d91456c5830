package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/chain"
	"catenary/embedded"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/natsconn"
	"catenary/internal/room"
	"catenary/internal/run"
)

var (
	// errReopen means that the chain is to be started again.
	errReopen = errors.New("there is room on the disk again")
	// errDrained means that up has been told to stop, and that nothing is under way any more.
	errDrained = errors.New("drained")
)

// reopenPoll is how often the full disk is looked at.
const reopenPoll = 250 * time.Millisecond

// upRun is a whole chain, from the start of its server to its end.
type upRun struct {
	*app
	cfg     upConfig
	store   string // absolute
	accept  *run.AcceptedLoss
	server  *embedded.Server
	monitor run.Monitor
	log     *slog.Logger
	// writing is closed when commands are taken, projecting when questions are answered.
	writing, projecting chan struct{}
}

// upOnce runs the chain until the context ends, it is drained, or it is to be started again: errReopen. It notes where the server listens.
func (a *app) upOnce(ctx context.Context, c *upConfig, accept *run.AcceptedLoss, monitor run.Monitor) (err error) {
	log := a.logger(slog.LevelInfo)
	serverLog := slog.New(quieter{Handler: log.Handler(), level: slog.LevelWarn})
	if c.verbose {
		log = a.logger(slog.LevelDebug)
		serverLog = log
	}
	store, err := filepath.Abs(c.store)
	if err != nil {
		return errors.Wrapf(err, "store directory %s", c.store)
	}
	server, err := embedded.Start(ctx, embedded.Config{
		StoreDir: store, Listen: c.listen, Durability: embedded.Durability(c.durability), Logger: serverLog,
	})
	if err != nil {
		return upError(ctx, c.store, err)
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		err = errors.CombineErrors(err, server.Shutdown(stopping))
		log.Info("stopped")
	}()
	c.listen = server.Listen()
	if path := server.CredentialsPath(); path != "" && !c.again {
		log.Info("clients need a user and a password, as NATS_USER and NATS_PASSWORD or in a nats context", "file", path)
	}
	if err := prepare(ctx, server); err != nil {
		return upError(ctx, c.store, err)
	}
	u := &upRun{
		app: a, cfg: *c, store: store, accept: accept, server: server, monitor: monitor, log: log, writing: make(chan struct{}), projecting: make(chan struct{}),
	}
	return upError(ctx, c.store, u.run(ctx))
}

// run runs all parts over the server. What ends them over a full disk is errReopen, as soon as there is room.
func (u *upRun) run(ctx context.Context) error {
	u.draining.able.Store(true)
	err := run.Together(ctx, map[string]func(context.Context) error{
		"store":     u.reopen,
		"writer":    u.over(u.write),
		"projector": u.over(u.project),
		"engine":    u.over(u.walk),
		"agents":    u.server.FollowAgents,
		"health":    u.over(func(ctx context.Context, nc *nats.Conn) error { return u.monitor.AnswerHealth(ctx, nc, u.log) }),
		"front":     u.front,
	})
	if err == nil || ctx.Err() != nil || errors.IsAny(err, errReopen, errDrained) {
		return err
	}
	select {
	case <-u.server.Unwritable():
		// Whatever ended first, it is because of that.
		u.log.Error("a part has ended over the full disk", "reason", err)
		return u.reopen(ctx)
	default:
		return err
	}
}

// reopen waits until the server can't write to its store, and then until there is room to start it again. It gives an error marked
// errReopen.
func (u *upRun) reopen(ctx context.Context) error {
	select {
	case <-u.server.Unwritable():
	case <-ctx.Done():
		return nil
	}
	u.log.Error("the server can't write to its store: nothing is recorded until it is started again, which is done here as soon as there is room on the disk", "store", u.store)
	tick := time.NewTicker(reopenPoll)
	defer tick.Stop()
	for {
		free, err := room.FreeBytes(u.store)
		if err != nil {
			return err
		}
		if free > room.ReserveBytes {
			return errReopen
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// over runs a part over a connection of its own.
func (u *upRun) over(part func(context.Context, *nats.Conn) error) func(context.Context) error {
	return func(ctx context.Context) error {
		nc, err := u.server.Ledger()
		if err != nil {
			return err
		}
		defer nc.Close()
		return part(ctx, nc)
	}
}

// write runs the writer.
func (u *upRun) write(ctx context.Context, nc *nats.Conn) error {
	watch, err := room.New(room.Config{Conn: nc, Dir: u.store, Now: u.Now, Logger: u.log.With("component", "room")})
	if err != nil {
		return err
	}
	return run.Writer(ctx, nc, run.WriterConfig{
		Streams: u.server.Options(), Room: watch,
		Durability:       dispatch.Durability{Fsync: u.cfg.durability == string(embedded.DurabilityFsync), Replicas: 1},
		DiscardSnapshots: u.cfg.discardSnapshots, Accept: u.accept, AuditFile: u.cfg.auditFile(u.store), EraseCopies: u.server.EraseActor,
		Now: u.Now, Monitor: u.monitor, Logger: u.log, Ready: func() { close(u.writing) },
		Alone: true, // nobody else has the password of the ledger's account
	})
}

// project runs the projector.
func (u *upRun) project(ctx context.Context, nc *nats.Conn) error {
	copies, err := u.server.OpenMirrors()
	if err != nil {
		return err
	}
	c := u.cfg
	return run.Projector(ctx, nc, run.ProjectorConfig{
		Streams: u.server.Options(), Copies: copies, AuditFile: c.auditFile(u.store),
		Proofs: run.ProofConfig{KeyFile: cmp.Or(c.checkpointKey, filepath.Join(u.store, checkpointKeyFile)), NewKeys: c.newCheckpointKey, Chain: c.chain, Every: c.checkpointEvery},
		Now:    u.Now, Monitor: u.monitor, Logger: u.log, Ready: func() { close(u.projecting) },
	})
}

// walk walks rollouts, if it is to, until up is told to drain and what is under way has come to its end. It gives [errDrained].
func (u *upRun) walk(ctx context.Context, nc *nats.Conn) error {
	writing := u.writing
	if u.cfg.noEngine {
		writing = nil
	}
	select {
	case <-writing: // the stream has been looked over
	case <-u.draining.asked:
		return errDrained
	case <-ctx.Done():
		return nil
	}
	// The store is this process's alone, and so is the lease: it needs not run out after a kill.
	err := run.Engine(ctx, nc, run.EngineConfig{Holder: "catenary up", Drain: u.draining.asked, Now: u.Now, Monitor: u.monitor, Logger: u.log})
	if err == nil && ctx.Err() == nil {
		return errDrained
	}
	return err
}

// front waits until people can use the chain, as people do, says so, and then waits for the end.
func (u *upRun) front(ctx context.Context) error {
	for _, ready := range []chan struct{}{u.writing, u.projecting} {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	config := natsconn.Config{Server: u.server.ClientURL(), Logger: u.log}
	if path := u.server.CredentialsPath(); path != "" {
		credentials, err := embedded.ReadCredentials(path)
		if err != nil {
			return err
		}
		config.User, config.Password = credentials.User, credentials.Password
	}
	s, err := u.dial(ctx, config)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	if err := s.awaitReady(ctx, u.log); err != nil {
		return err
	}
	if !u.cfg.again {
		if err := u.sayReady(ctx, s); err != nil {
			return err
		}
	}
	if u.cfg.demo {
		return demoAgents(ctx, s.conn, u.log)
	}
	<-ctx.Done()
	return nil
}

// sayReady brings in the demo, if it is to, and says that the chain can be used.
func (u *upRun) sayReady(ctx context.Context, s *session) error {
	if u.cfg.demo {
		if err := u.bringDemo(ctx, s, u.log); err != nil {
			return err
		}
	}
	ready, err := json.Marshal(struct {
		Ready bool   `json:"ready"`
		NATS  string `json:"nats"`
		Store string `json:"store"`
		HTTP  string `json:"http,omitempty"`
	}{true, u.server.ClientURL(), u.store, u.cfg.page})
	if err != nil {
		return errors.Wrap(err, "encode the ready line")
	}
	if _, err := u.Stdout.Write(append(ready, '\n')); err != nil {
		return errors.Wrap(err, "write the ready line")
	}
	if u.cfg.demo {
		u.sayGuide(u.server.ClientURL())
	}
	return nil
}

// upError gives nil for whatever failed only because up was told to stop, and says what to do about a damaged stream.
func upError(ctx context.Context, store string, err error) error {
	switch {
	case ctx.Err() != nil, errors.Is(err, errDrained):
		return nil
	case errors.Is(err, es.ErrBrokenChain):
		return errors.WithHintf(err, "nothing is recorded over a damaged stream; see what else differs with: catenary verify --store %s", store)
	}
	return err
}

// prepare makes the streams and, before anything writes to the buckets, their copies.
func prepare(ctx context.Context, server *embedded.Server) error {
	nc, err := server.Ledger()
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := run.Prepare(ctx, nc, server.Options()); err != nil {
		return err
	}
	return server.EnsureMirrors(ctx)
}

// awaitReady waits until all that was recorded can be read. A view that has stopped is no reason to keep the others, and the
// means to find out why, from people.
func (s *session) awaitReady(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	newest, err := s.queries.Log(ctx, audit.LogQuestion{Limit: 1})
	if err != nil || len(newest.Items) == 0 {
		return err
	}
	for {
		err := s.shown(ctx, newest.Items[0].Sequence, readyStep)
		switch {
		case errors.Is(err, chain.ErrStopped):
			log.Error("not all of the chain can be read", "reason", err)
			return nil
		case !errors.Is(err, chain.ErrBehind):
			return err
		}
		if rebuilt, err := s.onlyRebuilt(ctx); err != nil || rebuilt {
			return err
		}
		log.Info("catching up", "reason", err)
	}
}

// onlyRebuilt says whether all views that are behind are being built anew. What stands can be read meanwhile.
func (s *session) onlyRebuilt(ctx context.Context) (bool, error) {
	p, err := s.queries.Position(ctx, audit.PositionQuestion{})
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(p.Views, func(v audit.ViewPosition) bool { return v.Event < p.Tail && !v.Rebuilding }), nil
}
