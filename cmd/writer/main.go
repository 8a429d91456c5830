package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"

	"catenary/es/dispatch"
	"catenary/internal/run"
)

// Main is one run of the program, and all it touches.
type Main struct {
	Args   []string
	Env    func(name string) string
	Stderr io.Writer
}

// Run runs a writer until the context ends, and gives the exit code.
func (m Main) Run(ctx context.Context) int {
	return run.Program{
		Name:  "writer",
		About: "Writer decides commands and appends their events to the event stream.",
		Part: func(ctx context.Context, nc *nats.Conn, s run.Settings, log *slog.Logger) error {
			accept, err := s.Accept()
			if err != nil {
				return err
			}
			return run.Writer(ctx, nc, run.WriterConfig{
				Streams:    s.Streams(),
				Durability: dispatch.Durability{Fsync: s.Durability == "fsync", Replicas: s.Replicas},
				Logger:     log, DiscardSnapshots: s.DiscardSnapshots, Accept: accept,
			})
		},
	}.Main(ctx, m.Args, m.Env, m.Stderr)
}

func main() {
	// A second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Main{Args: os.Args[1:], Env: os.Getenv, Stderr: os.Stderr}.Run(ctx))
}
