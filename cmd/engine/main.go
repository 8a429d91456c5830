package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"

	"catenary/internal/run"
)

// exitLeft is the exit code of an engine that has left at once.
const exitLeft = 1

// Main is one run of the program, and all it touches.
type Main struct {
	Args   []string
	Env    func(name string) string
	Stderr io.Writer
	// Signals are ^C and SIGTERM as they come: the first drains, the second stops, the third leaves at once.
	Signals <-chan os.Signal
	// Ready is called when the engine has read what was there. It may be nil.
	Ready func()
}

// Run runs an engine until it has stopped, and gives the exit code.
func (m Main) Run(ctx context.Context) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	drain := make(chan struct{})
	code := make(chan int, 1)
	go func() { code <- m.program(drain).Main(ctx, m.Args, m.Env, m.Stderr) }()
	for heard := 0; ; {
		select {
		case c := <-code:
			return c
		case <-m.Signals:
			heard++
		}
		switch heard {
		case 1:
			close(drain)
		case 2:
			m.sayf("stopping now: what runs is left to the next engine; once more leaves at once")
			stop()
		default:
			m.sayf("left at once: the lease runs out by itself, and the steps named above are settled by the next engine")
			return exitLeft
		}
	}
}

func (m Main) program(drain <-chan struct{}) run.Program {
	return run.Program{
		Name:  "engine",
		About: "Engine walks rollouts: it begins their steps, ends them by what nodes report, and says why the rest waits.",
		Part: func(ctx context.Context, nc *nats.Conn, s run.Settings, monitor run.Monitor, log *slog.Logger) error {
			return run.Engine(ctx, nc, run.EngineConfig{TTL: s.LeaseTTL, Drain: drain, Monitor: monitor, Logger: log, Ready: m.Ready})
		},
	}
}

// sayf talks to whoever sends the signals. When even that can't be written, the exit code has to do.
func (m Main) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(m.Stderr, "engine: "+format+"\n", args...)
}

func main() {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(Main{Args: os.Args[1:], Env: os.Getenv, Stderr: os.Stderr, Signals: signals}.Run(context.Background()))
}
