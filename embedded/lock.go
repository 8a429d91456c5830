package embedded

import (
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
	"golang.org/x/sys/unix"
)

const (
	lockFile  = "lock"
	dirMode   = 0o700
	stateMode = 0o600
)

// storeLock holds a store directory for the life of the process: the kernel drops it when the process ends, however it
// ends, so a stale lock can't exist. Two servers over one directory would destroy it.
type storeLock struct{ file *os.File }

// lockStore creates the directory when needed and locks it. It gives ErrStore and ErrStoreLocked.
func lockStore(dir string) (*storeLock, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "create store directory %s; choose another with the store option", dir), ErrStore)
	}
	// The file is never removed: a process that waited on a removed file would hold a lock on nothing.
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, stateMode)
	if err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "store directory %s is not writable; choose another or change its owner", dir), ErrStore)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &storeLock{file: f}, nil
	}
	err = errors.CombineErrors(err, f.Close())
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Wrapf(ErrStoreLocked, "%s is held by another running process; stop that one, connect to it instead, or choose another directory", dir)
	}
	return nil, errors.Mark(errors.Wrapf(err, "lock store directory %s", dir), ErrStore)
}

// release gives the directory back. Closing the file drops the lock.
func (l *storeLock) release() error {
	return errors.Wrap(l.file.Close(), "release the lock of the store directory")
}
