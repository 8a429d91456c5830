package main

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"

	"catenary/internal/run"
)

func main() { program().Exec() }

// program runs a projector.
func program() run.Program {
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
	}
}
