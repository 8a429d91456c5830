package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"catenary/embedded"
)

const serverHelp = `Server runs one server from a configuration file, as catenary configure writes it: alone, or as one of a cluster. nats-server takes the same files; this
one is the server that Catenary was tested with, and keeps its store for itself.

It runs until ^C or SIGTERM; a server of a cluster hands on what it leads before it ends. SIGHUP makes it read the file again. It ends by itself when it can't
write to its store any more: have a supervisor start it again.

A store that a server has filled alone is not let into a cluster: its streams would be removed. docs/guides/cluster.md says how a chain grows.`

func (a *app) serverCommand() *cobra.Command {
	var file string
	var verbose bool
	cmd := &cobra.Command{
		Use: "server", Short: "Run one server, alone or as one of a cluster", Long: serverHelp, GroupID: groupRun, Args: cobra.NoArgs,
		Example: "  catenary server --config deploy/nats-server.conf",
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `file` of the server")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "log all that the server says")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag stands above
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := notEmpty(map[string]string{"config": file}); err != nil {
			return err
		}
		again := make(chan os.Signal, 1)
		signal.Notify(again, syscall.SIGHUP)
		defer signal.Stop(again)
		level := slog.LevelInfo
		if verbose {
			level = slog.LevelDebug
		}
		return embedded.Serve(cmd.Context(), embedded.ServeConfig{
			File: file, Logger: a.logger(level), Reload: again,
			Ready: func(address string) { a.sayf("server is ready at nats://%s", address) },
		})
	}
	return cmd
}
