package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"catenary/agent/depot"
	"catenary/embedded"
	"catenary/es/natsstore"
	"catenary/internal/backup"
	"catenary/internal/natsconn"
	"catenary/internal/run"
	"catenary/internal/topology"
)

const backupHelp = `Backup takes the record of a chain into a new directory, while the chain runs.

It holds every event up to the moment it began, the signed checkpoints, the names behind the actors, and with --artifacts what is
stored for agents. Every event is checked on its way. A directory holds one backup: one that is not empty is refused. A backup that was
interrupted is never taken for a whole one.

All else is folded from the events again: buckets, the audit store, snapshots. Keep checkpoint.key and the credentials of the store
directory apart from backups. With --store it backs up a chain that does not run, and with --config one on a server of its own, of which no writer
runs.`

// backupFlags are what backup is told.
type backupFlags struct {
	store     string
	config    string
	artifacts bool
}

func (a *app) backupCommand() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Take the record into a directory", Long: backupHelp, GroupID: groupRun, Args: takes("DIR"),
		Example: `  catenary backup backups/2026-11-30
  catenary backup backups/whole --artifacts`,
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.artifacts, "artifacts", false, "with the artifacts that are stored for agents")
	flags.StringVar(&f.store, "store", "", "back up the store in `DIR`, of a chain that does not run")
	flags.StringVar(&f.config, "config", "", "`file` with the writer's settings: back up as its user, when no writer runs")
	cmd.MarkFlagsMutuallyExclusive("store", "config")
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := givenDir(args[0]); err != nil {
			return err
		}
		take := a.backupRunning
		switch {
		case cmd.Flags().Changed("store"):
			if err := notEmpty(map[string]string{"store": f.store}); err != nil {
				return err
			}
			take = a.backupStopped
		case cmd.Flags().Changed("config"):
			if err := notEmpty(map[string]string{"config": f.config}); err != nil {
				return err
			}
			take = a.backupAsLedger
		}
		m, err := take(cmd.Context(), args[0], f)
		if err != nil {
			return err
		}
		return a.showBackup(*output, args[0], m)
	}
	return cmd
}

// givenDir gives a usage error for a directory that was given as nothing, as a script does whose variable is not set.
func givenDir(dir string) error {
	if dir == "" {
		return usagef("DIR is empty: give a directory")
	}
	return nil
}

// backupRunning backs up a chain that runs. There is no bound on the whole: each of its pieces has its own.
func (a *app) backupRunning(ctx context.Context, dir string, f backupFlags) (m backup.Manifest, err error) {
	err = a.withBus(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) (err error) {
		m, err = a.takeBackup(ctx, dir, backup.NewClient(s.conn.Conn, s.conn.WithDenial), s.depot, f)
		return err
	})
	return m, err
}

// backupStopped backs up the store of a chain that does not run. It serves it meanwhile; nothing is recorded.
func (a *app) backupStopped(ctx context.Context, dir string, f backupFlags) (m backup.Manifest, err error) {
	if err := embedded.CheckStore(f.store); err != nil {
		return m, errors.WithHint(err, "give the directory that catenary up was given as --store")
	}
	log := slog.New(slog.DiscardHandler)
	err = a.withStore(ctx, embedded.Config{StoreDir: f.store, Logger: log}, func(server *embedded.Server, nc *nats.Conn) (err error) {
		m, err = a.backupFrom(ctx, dir, nc, server.Options(), f)
		return err
	})
	return m, err
}

// backupAsLedger backs up from a server as the ledger's user, who needs no writer.
func (a *app) backupAsLedger(ctx context.Context, dir string, f backupFlags) (m backup.Manifest, err error) {
	settings, conn, err := a.ledgerOf(ctx, "backup", f.config)
	if err != nil {
		return m, err
	}
	defer conn.Close()
	ctx, cancel := conn.WithDenial(ctx)
	defer cancel()
	return a.backupFrom(ctx, dir, conn.Conn, settings.Streams(), f)
}

// ledgerOf connects as the user that the settings of the writer name.
func (a *app) ledgerOf(ctx context.Context, command, config string) (run.Settings, *natsconn.Conn, error) {
	settings, err := run.LoadSettings(command, "", []string{"--config", config}, a.Env, a.Stderr)
	if err != nil {
		return settings, nil, errors.Mark(err, errUsage)
	}
	conn, err := natsconn.Connect(ctx, settings.Bus("catenary "+command, a.Env, slog.New(slog.DiscardHandler)))
	return settings, conn, err
}

// backupFrom backs up over a connection in the ledger's account. However the stream is configured: this is the way out of one that is not safe.
func (a *app) backupFrom(ctx context.Context, dir string, nc *nats.Conn, o topology.Options, f backupFlags) (m backup.Manifest, err error) {
	store, err := natsstore.Open(ctx, nc, natsstore.Config{Reading: true})
	if err != nil {
		return m, err
	}
	defer store.Close()
	if err := run.AskForHoles(ctx, nc); err != nil {
		return m, err
	}
	ledger, err := backup.NewLedger(nc, store)
	if err != nil {
		return m, err
	}
	if !f.artifacts {
		return a.takeBackup(ctx, dir, ledger, nil, f)
	}
	err = run.ServeDepot(ctx, nc, o, slog.New(slog.DiscardHandler), func(client *depot.Client) (err error) {
		m, err = a.takeBackup(ctx, dir, ledger, client, f)
		return err
	})
	return m, err
}

// withStore serves a store to nobody else, while work is done over a connection in the ledger's account.
func (a *app) withStore(ctx context.Context, c embedded.Config, work func(*embedded.Server, *nats.Conn) error) (err error) {
	server, err := embedded.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		err = errors.CombineErrors(err, server.Shutdown(stopping))
	}()
	nc, err := server.Ledger()
	if err != nil {
		return err
	}
	defer nc.Close()
	return work(server, nc)
}

func (a *app) takeBackup(ctx context.Context, dir string, source backup.Source, client *depot.Client, f backupFlags) (backup.Manifest, error) {
	bar := a.newProgressBar()
	defer bar.end()
	c := backup.Config{Source: source, Program: run.Version(), Now: a.Now, Progress: func(p backup.Progress) { bar.show(int(p.Events), int(p.All)) }}
	if f.artifacts {
		c.Artifacts = run.BackupArtifacts(client)
	}
	return backup.Take(ctx, dir, c)
}

// showBackup shows what a backup holds.
func (a *app) showBackup(f format, dir string, m backup.Manifest) error {
	body, err := json.Marshal(struct {
		Dir string `json:"dir"`
		backup.Manifest
	}{dir, m})
	if err != nil {
		return errors.Wrap(err, "encode the manifest")
	}
	zone, err := a.location()
	if err != nil {
		return err
	}
	return a.printOne(f, []string{"BACKUP", "EVENTS", "HEAD", "RECORDED", "FILES", "BYTES"}, line{name: dir, json: body, cells: func() []string {
		last := ""
		if !m.Recorded.IsZero() {
			last = showTime(m.Recorded, zone)
		}
		return []string{dir, strconv.FormatUint(m.Head.Sequence, 10), m.Head.Hash.String(), last, strconv.Itoa(len(m.Files)), strconv.FormatInt(m.Bytes(), 10)}
	}})
}
