package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"catenary/embedded"
	"catenary/internal/backup"
	"catenary/internal/room"
	"catenary/internal/run"
)

const restoreHelp = `Restore puts a backup into an empty store.

Before anything is written, every file of the backup is compared with its digest. A store that holds anything is refused. The events get
the sequences they had, byte for byte, and are read back; then the store is ready for catenary up, or for the writer and the projector,
which fold the buckets and the audit store again.

With --store it makes the store of catenary up. With --config it restores onto a server, as the user that the settings of the writer name.
When it was interrupted, run it again: it goes on where it stopped. Nobody starts over what is there before it has ended.

A chain that has gone on after the backup was taken is shorter now, and whoever has seen more says so: see docs/guides/backup.md.`

// restoreFlags are what restore is told.
type restoreFlags struct {
	store, config string
}

func (a *app) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use: "restore DIR", Short: "Put a backup into an empty store", Long: restoreHelp, GroupID: groupRun, Args: takes("DIR"),
		Example: `  catenary restore backups/2026-11-30 --store catenary-data
  catenary restore backups/2026-11-30 --config deploy/catenary.yaml`,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "the `directory` to make, for catenary up")
	flags.StringVar(&f.config, "config", "", "`file` with the writer's settings, which say where the server is and how large its streams are")
	cmd.MarkFlagsOneRequired("store", "config")
	cmd.MarkFlagsMutuallyExclusive("store", "config")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := givenDir(args[0]); err != nil {
			return err
		}
		for name, value := range map[string]string{"store": f.store, "config": f.config} {
			if cmd.Flags().Changed(name) {
				if err := notEmpty(map[string]string{name: value}); err != nil {
					return err
				}
			}
		}
		return a.restore(cmd.Context(), args[0], f)
	}
	return cmd
}

func (a *app) restore(ctx context.Context, dir string, f restoreFlags) error {
	m, err := backup.Read(dir)
	if err != nil {
		return err
	}
	bar := a.newProgressBar()
	defer bar.end()
	if err := m.CheckFiles(ctx, dir, nil); err != nil {
		return err
	}
	progress := func(p backup.Progress) { bar.show(int(p.Events), int(p.All)) }
	if f.config != "" {
		err = a.restoreOnto(ctx, dir, m, f.config, progress)
	} else {
		err = a.restoreInto(ctx, dir, m, f.store, progress)
	}
	if err != nil {
		return err
	}
	bar.end()
	next := "start the writer and the projector, then: catenary verify"
	if f.store != "" {
		next = "put checkpoint.key into it if the chain signs, start it with catenary up --store " + shellWord(f.store) + ", then: catenary verify"
	}
	a.sayf("restored %d events up to the hash %s; %s", m.Head.Sequence, m.Head.Hash, next)
	return nil
}

// restoreOnto restores onto a server, as the ledger's user.
func (a *app) restoreOnto(ctx context.Context, dir string, m backup.Manifest, config string, progress func(backup.Progress)) error {
	settings, conn, err := a.ledgerOf(ctx, "restore", config)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := conn.WithDenial(ctx)
	defer cancel()
	return goesOn(run.Restore(ctx, m, dir, backup.Target{Conn: conn.Conn, Streams: settings.Streams(), Progress: progress}, slog.New(slog.DiscardHandler)), "")
}

// restoreInto makes the store of a chain. Until it is whole it is marked, so that nobody starts over it.
func (a *app) restoreInto(ctx context.Context, dir string, m backup.Manifest, store string, progress func(backup.Progress)) error {
	store, err := filepath.Abs(store)
	if err != nil {
		return errors.Wrapf(err, "store directory %s", store)
	}
	begun, err := checkNoStore(store)
	if err != nil {
		return err
	}
	if !begun {
		if err := checkRoom(m, store); err != nil {
			return err
		}
	}
	if err := embedded.BeginRestore(store); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	err = a.withStore(ctx, embedded.Config{StoreDir: store, Restoring: true, Logger: log}, func(server *embedded.Server, nc *nats.Conn) error {
		return run.Restore(ctx, m, dir, backup.Target{Conn: nc, Streams: server.Options(), Progress: progress}, log)
	})
	if err != nil {
		return goesOn(err, "; or remove "+store)
	}
	return embedded.EndRestore(store)
}

// goesOn says of a restore that did not end that it can be gone on with, or else what to do. Where another process is at work, there is nothing to
// remove.
func goesOn(err error, or string) error {
	if err == nil || errors.IsAny(err, backup.ErrNotEmpty, backup.ErrDamaged) {
		return err
	}
	if errors.Is(err, embedded.ErrStoreLocked) {
		return errors.WithHint(err, "wait for it, if it restores the same backup")
	}
	return errors.WithHint(err, "restore the same backup again, which goes on where it stopped"+or)
}

// checkNoStore makes sure that a directory is not there, or empty, or that a restore was begun in it. What a file system keeps at its root
// is nothing.
func checkNoStore(store string) (begun bool, err error) {
	if begun, err := embedded.Restoring(store); begun {
		return true, err
	}
	entries, err := os.ReadDir(store)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, errors.Wrap(err, "look at the store directory")
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "lost+found" }) {
		return false, errors.WithHint(errors.Mark(errors.Newf("%s is not empty", store), backup.ErrNotEmpty), "restore into a directory that does not exist; when the chain runs on it, remove the former one")
	}
	return false, nil
}

// checkRoom makes sure that a backup fits onto the disk that its store is to be on, of which nothing is there yet.
func checkRoom(m backup.Manifest, store string) error {
	free, err := room.FreeBytes(store)
	for at := store; errors.Is(err, os.ErrNotExist); {
		at = filepath.Dir(at)
		free, err = room.FreeBytes(at)
	}
	if need := m.EventBytes + m.Bytes() + room.ReserveBytes; err == nil && free < need {
		return errors.WithHint(errors.Mark(errors.Newf("the disk of %s has %d bytes left, the restore needs about %d", store, free, need), errRefused), "free some, or choose another disk")
	}
	return err
}
