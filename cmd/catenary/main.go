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
}

// Run does what the arguments say and gives the exit code. Ending the context is how a person interrupts it.
func (m Main) Run(ctx context.Context) int {
	a := &app{Main: m}
	root := a.rootCommand()
	root.SetArgs(m.Args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.ran {
		// Nothing was begun: it is the arguments that cobra found wrong.
		err = errors.Mark(err, errUsage)
	}
	if err != nil && !errors.Is(err, errStatesDiffer) {
		a.explain(cmd, err)
	}
	return exitCode(err)
}

func main() {
	// The first signal ends the context; then signals act as if nobody listened, so that a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	end := run.Slack(os.Getenv) // up is a server process, and what else runs ends before it has anything to collect
	code := Main{Program: os.Args[0], Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Getenv, Now: time.Now}.Run(ctx)
	end()
	os.Exit(code)
}
