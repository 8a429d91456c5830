package embedded

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats-server/v2/server"

	"catenary/internal/topology"
)

// ErrJoins means that a server is to join a cluster with a store that it filled alone.
var ErrJoins = errors.New("embedded server: a store of its own can't join a cluster")

// ServeConfig says which server is run.
type ServeConfig struct {
	// File is the configuration, as nats-server takes it. Required.
	File string
	// Logger receives the server's log. Default: slog.Default().
	Logger *slog.Logger
	// Reload makes the server read its configuration again, for each value. It may be nil.
	Reload <-chan os.Signal
	// Ready is called with the address for clients when they are taken. It may be nil.
	Ready func(address string)
}

// Serve runs one server by a configuration file until the context ends: alone, or as one of a cluster. It ends before that when the server
// can't write to its store any more, which a new start may mend. Before it starts, the store is locked, and one that a server has filled alone
// is not let into a cluster: the others know nothing of its streams, and the server would remove them. It gives ErrConfig, ErrListen, ErrStore,
// ErrStoreLocked, ErrJoins and ErrStart.
func Serve(ctx context.Context, c ServeConfig) (err error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	options, err := fileOptions(c.File)
	if err != nil {
		return err
	}
	if options.StoreDir == "" {
		return errors.Wrapf(ErrConfig, "%s: jetstream has no store_dir; name the directory in which everything is kept", c.File)
	}
	if err := mayJoin(options); err != nil {
		return err
	}
	lock, err := lockStore(options.StoreDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, lock.release()) }()
	if err := checkRestored(options.StoreDir); err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return errors.Mark(errors.Wrap(err, "server configuration"), ErrConfig)
	}
	log := newServerLog(c.Logger)
	log.attach(s)
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if err := awaitReady(ctx, s, log); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if c.Ready != nil {
		c.Ready(s.Addr().String())
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-log.unwritable:
			return errors.WithHint(errors.Mark(errors.New("the server can't write to its store any more"), ErrStore), "see its log for the reason; when the disk has room, start it again")
		case <-log.failed:
			return startError(log.fatal)
		case <-c.Reload:
			reload(s, c)
		}
	}
}

// reload has the server read its configuration again. One that can't be taken leaves it as it was.
func reload(s *server.Server, c ServeConfig) {
	options, err := fileOptions(c.File)
	if err == nil {
		err = s.ReloadOptions(options)
	}
	if err != nil {
		c.Logger.Error("the configuration is not taken; the server goes on with the former one", "file", c.File, "reason", err)
		return
	}
	c.Logger.Info("the configuration was read again", "file", c.File)
}

// fileOptions reads a configuration file. It gives ErrConfig.
func fileOptions(path string) (*server.Options, error) {
	options, err := server.ProcessConfigFile(path)
	if err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "server configuration %s", path), ErrConfig)
	}
	// A file that was cut short, or is another one, would serve everybody, keep nothing, and listen on every address.
	if !options.JetStream || !slices.ContainsFunc(options.Accounts, func(a *server.Account) bool { return a.Name == topology.AccountLedger }) {
		return nil, errors.WithHint(errors.Wrapf(ErrConfig, "%s has no jetstream block or no account %s: it is no configuration of Catenary, or not all of it", path, topology.AccountLedger),
			"write it again with catenary configure, which keeps the keys that are there")
	}
	options.NoSigs = true
	options.DisableJetStreamBanner = true
	return options, nil
}

// Where a server keeps its streams, and what the servers of a cluster have agreed on, below its store.
const (
	storeSubdirectory = "jetstream"
	agreedPattern     = "*/_js_/_meta_"
	streamsPattern    = "*/streams/*"
)

// mayJoin says whether a store may be used by a server with these options. It gives ErrJoins and ErrStore.
func mayJoin(o *server.Options) error {
	if o.Cluster.Port == 0 && o.Cluster.Name == "" {
		return nil
	}
	below := filepath.Join(o.StoreDir, storeSubdirectory)
	if _, err := os.Stat(below); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	agreed, err := filepath.Glob(filepath.Join(below, agreedPattern))
	if err != nil || len(agreed) > 0 {
		return errors.Mark(errors.Wrap(err, "look into the store"), ErrStore)
	}
	streams, err := filepath.Glob(filepath.Join(below, streamsPattern))
	if err != nil || len(streams) == 0 {
		return errors.Mark(errors.Wrap(err, "look into the store"), ErrStore)
	}
	return errors.WithHint(
		errors.Wrapf(ErrJoins, "%s holds %d streams that the cluster does not know: the server would remove them", o.StoreDir, len(streams)),
		"give the server an empty store, start the old one alone, take a backup (catenary backup), and restore it onto the cluster (catenary restore): see docs/guides/cluster.md")
}
