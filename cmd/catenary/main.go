package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/run"
)

// Main is one run of the program, and all it touches.
type Main struct {
	// Program is what the program was called as, Args are the arguments after it.
	Program        string
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Env reads an environment variable.
	Env func(name string) string
	// Now is the clock.
	Now func() time.Time
	// Signals are ^C and SIGTERM as they come. It may be nil.
	Signals <-chan os.Signal
}

// Run does what the arguments say and gives the exit code. Ending the context interrupts it.
func (m Main) Run(ctx context.Context) int {
	a := &app{Main: m, draining: newDraining()}
	return a.interruptible(ctx, a.execute)
}

func (a *app) execute(ctx context.Context) int {
	root := a.rootCommand()
	root.SetArgs(a.Args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.ran {
		// Nothing was begun: it is the arguments that cobra found wrong.
		err = errors.Mark(err, errUsage)
	}
	if err != nil && !shown(err) {
		a.explain(cmd, err)
	}
	return exitCode(err)
}

func main() {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	end := run.Slack(os.Getenv) // up is a server process, and what else runs ends before it has anything to collect
	code := Main{
		Program: os.Args[0], Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Getenv, Now: time.Now, Signals: signals,
	}.Run(context.Background())
	end()
	os.Exit(code)
}
