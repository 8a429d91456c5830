package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go"

	"catenary/internal/run"
)

func main() { program(os.Getenv).Exec() }

// program runs a projector, which takes from the environment who makes the mirrors.
func program(env func(name string) string) run.Program {
	return run.Program{
		Name:  "projector",
		About: "Projector folds the event stream into the buckets of the chain.",
		Part: func(ctx context.Context, nc *nats.Conn, s run.Settings, m run.Monitor, log *slog.Logger) error {
			c := run.ProjectorConfig{
				Streams: s.Streams(), AuditFile: s.Audit, Proofs: s.Proofs(), Guards: true, Monitor: m, Logger: log, Ready: func() { log.Info("queries are answered") },
			}
			mirrors, err := s.ConnectMirrors(ctx, "catenary projector, mirrors", env, log)
			if err != nil {
				return err
			}
			if mirrors != nil {
				defer mirrors.Close()
				c.Mirrors = mirrors.Conn
			}
			return run.Projector(ctx, nc, c)
		},
	}
}
