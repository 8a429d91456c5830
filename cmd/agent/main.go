package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"catenary/internal/run"
)

// Main is one run of the program, and all it touches.
type Main struct {
	Args   []string
	Env    func(name string) string
	Stderr io.Writer
}

// Run runs an agent until the context ends, and gives the exit code.
func (m Main) Run(ctx context.Context) int {
	return run.AgentMain(ctx, m.Args, m.Env, m.Stderr)
}

func main() {
	// A second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Main{Args: os.Args[1:], Env: os.Getenv, Stderr: os.Stderr}.Run(ctx))
}
