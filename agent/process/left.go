package process

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
)

// Running is a directory that holds a note for each command that runs, so that what a program which was killed has left can be ended by the next one.
// Empty notes nothing. One program at a time uses one.
type Running string

// envCommand names a command in the environment of all that it starts.
const envCommand = "CATENARY_COMMAND"

const (
	// lookAgain is how often it is looked whether all that was told to end has ended.
	lookAgain = 20 * time.Millisecond
	// killPatience is how long what was killed may take to be gone.
	killPatience = 5 * time.Second
)

// begin notes that a command begins, before it does. What it gives goes into the command's environment, and ends the note.
func (r Running) begin() (env string, over func() error, err error) {
	if r == "" {
		return envCommand + "=", func() error { return nil }, nil
	}
	id, err := uuid.NewRandom()
	if err == nil {
		err = os.MkdirAll(string(r), 0o700)
	}
	note := filepath.Join(string(r), id.String())
	if err == nil {
		err = os.WriteFile(note, nil, 0o600)
	}
	if err != nil {
		return "", nil, errors.Wrap(err, "note that a command runs")
	}
	return envCommand + "=" + id.String(), func() error { return errors.Wrap(os.Remove(note), "note that a command has ended") }, nil
}

// EndLeft ends the commands that a former program has begun and not seen to their end, with all that they have started, and tells how many processes
// those were. They are told to end, and killed after the grace. It MUST be called before a command is run. It gives the context's errors, those of the file system, and
// one that names a process which does not go.
func (r Running) EndLeft(ctx context.Context) (ended int, err error) {
	notes, err := os.ReadDir(string(r))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(notes) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, errors.Wrap(err, "look for commands that were left")
	}
	ids := map[string]bool{}
	for _, n := range notes {
		ids[n.Name()] = true
	}
	told := map[int]bool{}
	began := time.Now()
	for {
		left, err := processesOf(ids)
		if err != nil {
			return 0, err
		}
		if len(left) == 0 {
			break
		}
		since := time.Since(began)
		if since > grace+killPatience {
			return 0, errors.WithHint(errors.Newf("process %d, which a former run of this program has begun, does not end", left[0]), "end it by hand, and start again")
		}
		for _, pid := range left {
			signal := syscall.SIGTERM
			if since > grace {
				signal = syscall.SIGKILL
			} else if told[pid] {
				continue
			}
			told[pid] = true
			_ = syscall.Kill(pid, signal) // one that is gone needs none
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	for id := range ids {
		if err := os.Remove(filepath.Join(string(r), id)); err != nil {
			return len(told), errors.Wrap(err, "note that a command has ended")
		}
	}
	return len(told), nil
}

// processesOf finds the processes of commands in the system's table. A system without one is asked for none: nothing is found there.
func processesOf(ids map[string]bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "look for commands that were left")
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil {
			continue // it has gone, or is somebody else's
		}
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			if id, ok := bytes.CutPrefix(variable, []byte(envCommand+"=")); ok && ids[string(id)] {
				found = append(found, pid)
			}
		}
	}
	return found, nil
}
