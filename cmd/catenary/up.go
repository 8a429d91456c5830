package main

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit/proof"
	"catenary/embedded"
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
	// reopenPause bounds the pause between two starts: a disk that is full again at once is not worked on without end.
	reopenPause = 30 * time.Second
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
