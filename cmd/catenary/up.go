package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/audit/proof"
	"catenary/chain"
	"catenary/embedded"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/natsconn"
	"catenary/internal/room"
	"catenary/internal/run"
)

const upHelp = `Up runs a whole chain in one process: server, writer, projector, rollout engine and the copies that people read.

When it can be used it prints one JSON line: {"ready":true,"nats":URL,"store":DIR}, with --http also "http":URL. On loopback whoever
may use this machine may use the chain; beyond it, up makes a user and a password, and says in which file they are. Clients take
them from NATS_USER and NATS_PASSWORD, or from a nats context.

It ends with ^C or SIGTERM: the first lets no step of a rollout begin any more and waits for those that are under way, if there are
any; the second leaves them to the next start; the third leaves at once. The steps are named.`

const (
	defaultStore  = "catenary-data"
	defaultListen = "127.0.0.1:4222"
	// checkpointKeyFile stands in the store's directory, beside the operator's credentials.
	checkpointKeyFile = "checkpoint.key"
	// readyPatience bounds how long starting may take before it counts as failed: reading a stream of millions of events
	// takes minutes.
	readyPatience = 30 * time.Minute
	// readyStep is how long one question about it is kept open.
	readyStep = 2 * time.Second
	// stopPatience bounds the stopping of the server, which takes milliseconds.
	stopPatience = 10 * time.Second
)

// upConfig is what up is told.
type upConfig struct {
	store, listen, durability string
	audit                     string
	noAudit, demo, verbose    bool
	noEngine                  bool
	discardSnapshots          bool
	// again says that the chain is started again by the same process, which has said before that it can be used.
	again                  bool
	chain, checkpointKey   string
	newCheckpointKey       string
	checkpointEvery        time.Duration
	acceptAt, acceptReason string
	http, traces           string
	// page is the address at which health and metrics are served. Empty means that they are not.
	page string
}

func (a *app) upCommand() *cobra.Command {
	var c upConfig
	cmd := &cobra.Command{
		Use: "up", Short: "Run a whole chain in one process", Long: upHelp, GroupID: groupRun, Args: cobra.NoArgs,
		Example: "  catenary up --demo\n  catenary up --store /var/lib/catenary --listen 127.0.0.1:4222",
	}
	flags := cmd.Flags()
	flags.StringVar(&c.store, "store", defaultStore, "the `directory` that keeps everything")
	flags.StringVar(&c.listen, "listen", defaultListen, "`HOST:PORT` for clients; port 0 takes a free one")
	flags.StringVar(&c.durability, "durability", string(embedded.DurabilityFsync), "when an event counts as stored: fsync (it survives a power loss) or interval (faster; a power loss may take two minutes)")
	flags.StringVar(&c.audit, "audit", "", "the `file` of the audit store, which answers questions about the past (default "+run.AuditFile+" in the store directory)")
	flags.BoolVar(&c.noAudit, "no-audit", false, "keep no audit store")
	cmd.MarkFlagsMutuallyExclusive("audit", "no-audit")
	flags.BoolVar(&c.noEngine, "no-engine", false, "walk no rollouts here: another engine does, or their steps are begun and ended by hand")
	flags.BoolVar(&c.demo, "demo", false, "bring in a small fleet to look at")
	flags.BoolVar(&c.discardSnapshots, "discard-snapshots", false, "read the whole event stream at this start")
	flags.StringVar(&c.checkpointKey, "checkpoint-key", "", "`file` with the keys that checkpoints are signed with (default "+checkpointKeyFile+" in the store; made at the first start)")
	flags.StringVar(&c.newCheckpointKey, "new-checkpoint-key", "", "the `reason` why the key is lost for good: a new one signs, and a checkpoint says so")
	flags.StringVar(&c.chain, "chain", "", "`name` that the first key gives the chain in its checkpoints (default one by chance)")
	flags.DurationVar(&c.checkpointEvery, "checkpoint-every", proof.DefaultEvery, "longest `span` that an event stands without a signed checkpoint")
	flags.StringVar(&c.acceptAt, "accept-truncated-at", "", "go on although events are lost, when the stream ends at this `event`; it is recorded")
	flags.StringVar(&c.acceptReason, "accept-reason", "", "`why` the loss is accepted")
	flags.StringVar(&c.http, "http", "", "serve /healthz, /readyz and /metrics at `HOST:PORT`, or at a port of loopback (default not at all)")
	flags.StringVar(&c.traces, "traces", "", "append traces to a `file`, a span a line (OTEL_EXPORTER_OTLP_ENDPOINT sends them on)")
	flags.BoolVar(&c.verbose, "verbose", false, "log what the server does too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := notEmpty(map[string]string{"store": c.store, "listen": c.listen}); err != nil {
			return err
		}
		if c.checkpointEvery <= 0 {
			return usagef("--checkpoint-every is %s: give a span above zero", c.checkpointEvery)
		}
		if err := proof.CheckNewKeysReason(c.newCheckpointKey); err != nil {
			return errors.Wrap(err, "--new-checkpoint-key")
		}
		accept, err := run.ParseAcceptedLoss(c.acceptAt, c.acceptReason)
		if err != nil {
			return errors.Mark(err, errUsage)
		}
		return a.up(cmd.Context(), c, accept)
	}
	return cmd
}

// auditFile is where the audit store is kept, given the store directory; empty for none.
func (c upConfig) auditFile(store string) string {
	switch {
	case c.noAudit:
		return ""
	case c.audit != "":
		return c.audit
	}
	return filepath.Join(store, run.AuditFile)
}

// notEmpty gives a usage error for a flag that was given without a value, as a script does whose variable is not set: neither
// the working directory nor any free port is what it means.
func notEmpty(flags map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if flags[name] == "" {
			return usagef("--%s is empty: give it a value, or leave it out", name)
		}
	}
	return nil
}

// up runs the chain, and starts it again in the same process when its server could not write to a full disk and there is room again.
func (a *app) up(ctx context.Context, c upConfig, accept *run.AcceptedLoss) error {
	monitor, page, closeMonitor, err := run.OpenMonitor(ctx, run.MonitorConfig{Program: "catenary up", HTTP: c.http, Traces: c.traces, Env: a.Env, Now: a.Now, Logger: a.logger(slog.LevelInfo)})
	if err != nil {
		return errors.Mark(err, errUsage)
	}
	defer closeMonitor()
	c.page = page.URL()
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = time.Second, reopenPause
	for {
		err := a.upOnce(ctx, &c, accept, monitor)
		if !errors.Is(err, errReopen) || ctx.Err() != nil {
			return err
		}
		a.logger(slog.LevelInfo).Warn("starting the chain again: there is room on the disk")
		// What was asked of the first start is done.
		accept, c.discardSnapshots, c.newCheckpointKey, c.again = nil, false, "", true
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
			return nil
		}
	}
}

// errReopen means that the chain is to be started again.
var errReopen = errors.New("there is room on the disk again")

const (
	// reopenPause bounds the pause between two starts: a disk that is full again at once is not worked on without end.
	reopenPause = 30 * time.Second
	// reopenPoll is how often the full disk is looked at.
	reopenPoll = 250 * time.Millisecond
)

// reopen waits until the server can't write to its store, and then until there is room to start it again. It gives an error marked
// errReopen.
func reopen(ctx context.Context, server *embedded.Server, store string, log *slog.Logger) error {
	select {
	case <-server.Unwritable():
	case <-ctx.Done():
		return nil
	}
	log.Error("the server can't write to its store: nothing is recorded until it is started again, which is done here as soon as there is room on the disk", "store", store)
	tick := time.NewTicker(reopenPoll)
	defer tick.Stop()
	for {
		free, err := room.FreeBytes(store)
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
	proofs := run.ProofConfig{KeyFile: cmp.Or(c.checkpointKey, filepath.Join(store, checkpointKeyFile)), NewKeys: c.newCheckpointKey, Chain: c.chain, Every: c.checkpointEvery}
	writing, projecting := make(chan struct{}), make(chan struct{})
	parts := map[string]func(context.Context) error{
		"store": func(ctx context.Context) error { return reopen(ctx, server, store, log) },
		"writer": a.upPart(server, func(ctx context.Context, nc *nats.Conn) error {
			watch, err := room.New(room.Config{Conn: nc, Dir: store, Now: a.Now, Logger: log.With("component", "room")})
			if err != nil {
				return err
			}
			return run.Writer(ctx, nc, run.WriterConfig{
				Streams: server.Options(), Room: watch,
				Durability:       dispatch.Durability{Fsync: c.durability == string(embedded.DurabilityFsync), Replicas: 1},
				DiscardSnapshots: c.discardSnapshots, Accept: accept, AuditFile: c.auditFile(store), EraseCopies: server.EraseActor, Now: a.Now, Monitor: monitor, Logger: log, Ready: func() { close(writing) },
				Alone: true, // nobody else has the password of the ledger's account
			})
		}),
		"projector": a.upPart(server, func(ctx context.Context, nc *nats.Conn) error {
			copies, err := server.OpenMirrors()
			if err != nil {
				return err
			}
			return run.Projector(ctx, nc, run.ProjectorConfig{
				Streams: server.Options(), Copies: copies, AuditFile: c.auditFile(store), Proofs: proofs, Now: a.Now, Monitor: monitor, Logger: log, Ready: func() { close(projecting) },
			})
		}),
		"agents": server.FollowAgents,
		"health": a.upPart(server, func(ctx context.Context, nc *nats.Conn) error { return monitor.AnswerHealth(ctx, nc, log) }),
		"front": func(ctx context.Context) error {
			for _, ready := range []chan struct{}{writing, projecting} {
				select {
				case <-ready:
				case <-ctx.Done():
					return nil
				}
			}
			return a.upFront(ctx, *c, server, store, log)
		},
	}
	parts["engine"] = a.upPart(server, func(ctx context.Context, nc *nats.Conn) error {
		return a.upEngine(ctx, nc, !c.noEngine, writing, monitor, log)
	})
	a.draining.able.Store(true)
	err = run.Together(ctx, parts)
	if err != nil && ctx.Err() == nil && !errors.IsAny(err, errReopen, errDrained) {
		select {
		case <-server.Unwritable():
			// Whatever ended first, it is because of that.
			log.Error("a part has ended over the full disk", "reason", err)
			err = reopen(ctx, server, store, log)
		default:
		}
	}
	return upError(ctx, c.store, err)
}

// errDrained means that up has been told to stop, and that nothing is under way any more.
var errDrained = errors.New("drained")

// upEngine walks rollouts, if it is to, until up is told to drain and what is under way has come to its end. It gives [errDrained].
func (a *app) upEngine(ctx context.Context, nc *nats.Conn, walks bool, writing <-chan struct{}, monitor run.Monitor, log *slog.Logger) error {
	if !walks {
		writing = nil
	}
	select {
	case <-writing: // the stream has been looked over
	case <-a.draining.asked:
		return errDrained
	case <-ctx.Done():
		return nil
	}
	// The store is this process's alone, and so is the lease: it needs not run out after a kill.
	err := run.Engine(ctx, nc, run.EngineConfig{Holder: "catenary up", Drain: a.draining.asked, Now: a.Now, Monitor: monitor, Logger: log})
	if err == nil && ctx.Err() == nil {
		return errDrained
	}
	return err
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

// onlyRebuilt says whether all views that are behind are being built anew. What stands can be read meanwhile.
func (s *session) onlyRebuilt(ctx context.Context) (bool, error) {
	p, err := s.queries.Position(ctx, audit.PositionQuestion{})
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(p.Views, func(v audit.ViewPosition) bool { return v.Event < p.Tail && !v.Rebuilding }), nil
}

// upPart runs a part over a connection of its own.
func (a *app) upPart(server *embedded.Server, part func(context.Context, *nats.Conn) error) func(context.Context) error {
	return func(ctx context.Context) error {
		nc, err := server.Ledger()
		if err != nil {
			return err
		}
		defer nc.Close()
		return part(ctx, nc)
	}
}

// upFront waits until people can use the chain, as people do, says so, and then waits for the end.
func (a *app) upFront(ctx context.Context, c upConfig, server *embedded.Server, store string, log *slog.Logger) error {
	config := natsconn.Config{Server: server.ClientURL(), Logger: log}
	if path := server.CredentialsPath(); path != "" {
		credentials, err := embedded.ReadCredentials(path)
		if err != nil {
			return err
		}
		config.User, config.Password = credentials.User, credentials.Password
	}
	s, err := a.dial(ctx, config)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	if err := s.awaitReady(ctx, log); err != nil {
		return err
	}
	if c.again {
		if c.demo {
			return demoAgents(ctx, s.conn, log)
		}
		<-ctx.Done()
		return nil
	}
	if c.demo {
		if err := a.bringDemo(ctx, s, log); err != nil {
			return err
		}
	}
	ready, err := json.Marshal(struct {
		Ready bool   `json:"ready"`
		NATS  string `json:"nats"`
		Store string `json:"store"`
		HTTP  string `json:"http,omitempty"`
	}{true, server.ClientURL(), store, c.page})
	if err != nil {
		return errors.Wrap(err, "encode the ready line")
	}
	if _, err := a.Stdout.Write(append(ready, '\n')); err != nil {
		return errors.Wrap(err, "write the ready line")
	}
	if c.demo {
		a.sayGuide(server.ClientURL())
		return demoAgents(ctx, s.conn, log)
	}
	<-ctx.Done()
	return nil
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
