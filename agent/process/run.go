package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
)

// How a command comes to nothing.
var (
	// ErrNotStarted means that the command could not be started, so nothing was done.
	ErrNotStarted = errors.New("the command could not be started")
	// ErrTimedOut means that the command was ended because its time was over.
	ErrTimedOut = errors.New("the command took too long")
)

// ExitError says that a command ended by itself, and not well.
type ExitError struct {
	// Code is its exit code; -1 when a signal ended it.
	Code int
	// How says the same in words.
	How string
}

func (e *ExitError) Error() string { return e.How }

const (
	// grace is how long a command that is told to end may use for that.
	grace = 5 * time.Second
	// linger is how long output that a process left behind keeps open is waited for after the command's end.
	linger = 500 * time.Millisecond
)

// heldOpen is said where a command has left something running that may still write where it did: the system ends what writes there afterwards,
// and nobody would know why.
const heldOpen = "\n[%s has ended, and something that it has started still has its output: nothing more is read of that, so let it write elsewhere]\n"

// Command is what is run.
type Command struct {
	// Args are the program and its arguments. There is no shell in between.
	Args []string
	// Dir is where it runs; empty means where this program does.
	Dir string
	// Env is added to the environment of this program.
	Env []string
	// Stdin is what it may read.
	Stdin []byte
	// Output takes what it says, on both ways. Nil takes nothing.
	Output io.Writer
	// Stdout takes what it says on standard output instead, where it is not nil.
	Stdout io.Writer
	// Running notes that it runs.
	Running Running
	// Grace is how long it may use to end when its context has ended. Zero means five seconds.
	Grace time.Duration
}

// Run runs a command until it ends. When the context ends first the whole process group is told to end, and killed after the grace.
// It gives errors marked [ErrNotStarted] or [ErrTimedOut], a *[ExitError], and the context's cause.
func Run(ctx context.Context, c Command) error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return errors.Mark(errors.New("there is no command"), ErrNotStarted)
	}
	if err := context.Cause(ctx); err != nil {
		return errors.Mark(ended(ctx, c.Args[0]), ErrNotStarted)
	}
	if c.Dir != "" {
		// The system says of a missing directory that the command is missing.
		if _, err := os.Stat(c.Dir); err != nil {
			return errors.Mark(errors.Wrapf(err, "run %s in its directory", c.Args[0]), ErrNotStarted)
		}
	}
	if c.Grace == 0 {
		c.Grace = grace
	}
	if c.Output == nil {
		c.Output = io.Discard
	}
	name, over, err := c.Running.begin()
	if err != nil {
		return errors.Mark(err, ErrNotStarted)
	}
	return errors.CombineErrors(run(ctx, c, name), over())
}

func run(ctx context.Context, c Command, name string) error {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(append(os.Environ(), c.Env...), name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), c.Output, c.Output
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	cmd.WaitDelay = linger
	// A group of its own, so that whatever it starts can be ended with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return errors.Mark(errors.Wrapf(err, "run %s", c.Args[0]), ErrNotStarted)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if errors.Is(err, exec.ErrWaitDelay) {
			_, _ = fmt.Fprintf(c.Output, heldOpen, c.Args[0])
		}
		return exit(err, c.Args[0])
	case <-ctx.Done():
	}
	end(cmd.Process.Pid, done, c.Grace)
	return ended(ctx, c.Args[0])
}

// end ends a process group, and returns when its leader is gone.
func end(pid int, done <-chan error, grace time.Duration) {
	kill(pid, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	left := done
	select {
	case <-left:
		left = nil
	case <-timer.C:
	}
	// Also when the leader has gone: what it started may not have listened.
	kill(pid, syscall.SIGKILL)
	if left != nil {
		<-left
	}
}

// kill sends a signal to a process group. One that is gone needs none.
func kill(pid int, signal syscall.Signal) { _ = syscall.Kill(-pid, signal) }

func ended(ctx context.Context, name string) error {
	cause := context.Cause(ctx)
	err := errors.Wrapf(cause, "run %s", name)
	if errors.Is(cause, context.DeadlineExceeded) {
		err = errors.Mark(errors.Newf("%s did not end in time, and was ended with all that it had started", name), ErrTimedOut)
	}
	return err
}

func exit(err error, name string) error {
	var failed *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case errors.As(err, &failed):
		how := fmt.Sprintf("%s ended with exit code %d", name, failed.ExitCode())
		if failed.ExitCode() < 0 {
			how = fmt.Sprintf("%s was ended: %s", name, strings.TrimPrefix(failed.ProcessState.String(), "signal: "))
		}
		return &ExitError{Code: failed.ExitCode(), How: how}
	}
	return errors.Wrapf(err, "run %s", name)
}
