package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"

	"catenary/internal/run"
)

// Main is one run of the program, and all it touches.
type Main struct {
	Args   []string
	Env    func(name string) string
	Stderr io.Writer
}

// Run runs a projector until the context ends, and gives the exit code.
func (m Main) Run(ctx context.Context) int {
	return run.Program{
		Name:  "projector",
		About: "Projector folds the event stream into the buckets of the chain.",
		Part: func(ctx context.Context, nc *nats.Conn, s run.Settings, log *slog.Logger) error {
			c := run.ProjectorConfig{
				Streams: s.Streams(), AuditFile: s.Audit, Proofs: s.Proofs(), Logger: log, Ready: func() { log.Info("queries are answered") },
			}
			mirrors, err := s.ConnectMirrors(ctx, "catenary projector, mirrors", m.Env, log)
			if err != nil {
				return err
			}
			if mirrors != nil {
				defer mirrors.Close()
				c.Mirrors = mirrors.Conn
			}
			return run.Projector(ctx, nc, c)
		},
	}.Main(ctx, m.Args, m.Env, m.Stderr)
}

func main() {
	// A second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Main{Args: os.Args[1:], Env: os.Getenv, Stderr: os.Stderr}.Run(ctx))
}
