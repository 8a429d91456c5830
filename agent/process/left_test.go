package process_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/process"
)

// envLeaver names a directory: the test's program then runs a command there for ever, until it is killed.
const envLeaver = "CATENARY_TEST_LEAVER"

// leaves is a command with a child, both of which ignore that they are told to end, and one that runs on after it has ended well.
const leaves = `trap "" TERM; sh -c 'trap "" TERM; echo $$ >child.new; mv child.new child; while :; do sleep 1; done' & echo $$ >leader.new; mv leader.new leader; while :; do sleep 1; done`

func running(dir string) process.Running { return process.Running(filepath.Join(dir, "running")) }

func leave(dir string) {
	err := process.Run(context.Background(), process.Command{Args: shell(`sleep 1000 >/dev/null 2>&1 & echo $! >service.new; mv service.new service`), Dir: dir, Running: running(dir)})
	if err == nil {
		err = process.Run(context.Background(), process.Command{Args: shell(leaves), Dir: dir, Running: running(dir)})
	}
	panic(err) // it is killed before that
}

// TestEndLeft kills a program in the middle of a command. The next one ends that, and all that it had started, and nothing of a command that had
// come to its end.
func TestEndLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), envLeaver+"="+dir)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	service := awaitNumber(t, filepath.Join(dir, "service"))
	defer func() { _ = syscall.Kill(service, syscall.SIGKILL) }()
	leader, child := awaitNumber(t, filepath.Join(dir, "leader")), awaitNumber(t, filepath.Join(dir, "child"))
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	for _, pid := range []int{leader, child} {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("process %d went with its program: %v", pid, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := running(dir).EndLeft(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is not gone: %v", err)
	}
	// Each loop of theirs has a sleep beside it.
	if ended, err := running(dir).EndLeft(t.Context()); err != nil || ended < 2 {
		t.Errorf("it has ended %d processes, %v", ended, err)
	}
	for _, pid := range []int{leader, child} {
		if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")); err == nil && len(text) > 0 {
			t.Errorf("process %d runs on", pid)
		}
	}
	if err := syscall.Kill(service, 0); err != nil {
		t.Errorf("what a command that had ended well has started is gone: %v", err)
	}
	for range 2 {
		if ended, err := running(dir).EndLeft(t.Context()); ended != 0 || err != nil {
			t.Errorf("once more: %d, %v", ended, err)
		}
	}
}

// TestNotes: there is a note of a command while it runs, and one that can't be noted is not run.
func TestNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := process.Command{Args: shell(`test -e running/"$CATENARY_COMMAND" && touch ran`), Dir: dir, Running: running(dir)}
	if err := process.Run(t.Context(), c); err != nil {
		t.Errorf("it has no note: %v", err)
	}
	if left, err := os.ReadDir(string(running(dir))); err != nil || len(left) > 0 {
		t.Errorf("after it notes stand: %v, %v", left, err)
	}
	c.Running = process.Running(filepath.Join(dir, "ran", "running"))
	if err := process.Run(t.Context(), c); !errors.Is(err, process.ErrNotStarted) {
		t.Errorf("without a note it gives %v", err)
	}
}
