package process_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"go.uber.org/goleak"

	"catenary/agent/process"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envLeaver); dir != "" {
		leave(dir)
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestRun(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	err := process.Run(t.Context(), process.Command{
		Args: shell(`cat; echo "$WORD"; echo aside >&2; pwd`), Env: []string{"WORD=hello"}, Stdin: []byte("in\n"), Output: &said, Dir: "/",
	})
	if err != nil || said.String() != "in\nhello\naside\n/\n" {
		t.Errorf("it said %q, %v", said.String(), err)
	}
	var out, aside strings.Builder
	err = process.Run(t.Context(), process.Command{Args: shell(`echo out; echo aside >&2`), Output: &aside, Stdout: &out})
	if err != nil || out.String() != "out\n" || aside.String() != "aside\n" {
		t.Errorf("it said %q and %q, %v", out.String(), aside.String(), err)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]process.ExitError{
		"exit 3":       {Code: 3, How: "/bin/sh ended with exit code 3"},
		"kill -9 $$":   {Code: -1, How: "/bin/sh was ended: killed"},
		"exec /nosuch": {Code: 127, How: "/bin/sh ended with exit code 127"},
	} {
		var failed *process.ExitError
		if err := process.Run(t.Context(), process.Command{Args: shell(script)}); !errors.As(err, &failed) || *failed != want {
			t.Errorf("%s: got %v, want %v", script, err, want)
		}
	}
	for name, args := range map[string][]string{"no command": nil, "unknown": {"/no/such/program"}} {
		if err := process.Run(t.Context(), process.Command{Args: args}); !errors.Is(err, process.ErrNotStarted) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := process.Run(over, process.Command{Args: shell("true")}); !errors.Is(err, context.Canceled) || !errors.Is(err, process.ErrNotStarted) {
		t.Errorf("after the end: got %v", err)
	}
}

// TestGroupIsGone waits until a child of the command is there, ends the command, and looks for the child.
func TestGroupIsGone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "child")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		script := `sh -c 'trap "" TERM; echo $$ >"$0.new"; mv "$0.new" "$0"; while :; do sleep 1; done' "` + file + `" & trap "" TERM; wait; wait`
		done <- process.Run(ctx, process.Command{Args: shell(script), Grace: 100 * time.Millisecond})
	}()
	child := awaitNumber(t, file)
	cancel(context.DeadlineExceeded)
	if err := <-done; !errors.Is(err, process.ErrTimedOut) {
		t.Errorf("got %v", err)
	}
	awaitGone(t, child)
}

// TestLeftBehind runs a command that leaves a process behind which keeps its output open. That this is read no more is said.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "child")
	var said bytes.Buffer
	if err := process.Run(t.Context(), process.Command{Args: shell(`echo up; sleep 1000 & echo $! >` + file), Output: &said}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "up\n") || !strings.Contains(said.String(), "nothing more is read") {
		t.Errorf("it has said %q", said.String())
	}
	said.Reset()
	if err := process.Run(t.Context(), process.Command{Args: shell(`echo up; sleep 0 >/dev/null 2>&1 &`), Output: &said}); err != nil || said.String() != "up\n" {
		t.Errorf("with its output elsewhere it has said %q, %v", said.String(), err)
	}
	child := awaitNumber(t, file)
	if err := syscall.Kill(child, 0); err != nil {
		t.Errorf("what was left behind is gone: %v", err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func awaitNumber(t *testing.T, file string) int {
	t.Helper()
	var n int
	await(t, "the child", func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		n, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return n
}

// awaitGone waits until a process runs no more. One that nobody has waited for may still have an entry.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	await(t, "the child's end", func() bool {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return err != nil || strings.Contains(string(text), ") Z ")
	})
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
