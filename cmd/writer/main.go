package main

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"

	"catenary/es/dispatch"
	"catenary/internal/run"
)

func main() { program().Exec() }

// program runs a writer.
func program() run.Program {
	return run.Program{
		Name:  "writer",
		About: "Writer decides commands and appends their events to the event stream.",
		Part: func(ctx context.Context, nc *nats.Conn, s run.Settings, m run.Monitor, log *slog.Logger) error {
			accept, err := s.Accept()
			if err != nil {
				return err
			}
			return run.Writer(ctx, nc, run.WriterConfig{
				Streams:    s.Streams(),
				Durability: dispatch.Durability{Fsync: s.Durability == "fsync", Replicas: s.Replicas},
				Logger:     log, SnapshotEvery: s.SnapshotEvery, DiscardSnapshots: s.DiscardSnapshots, Accept: accept, Monitor: m,
			})
		},
	}
}
