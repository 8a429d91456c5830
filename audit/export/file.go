package export

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
)

// File is a file that is there whole or not at all: until it is committed, what stood under its name stands.
type File struct {
	*os.File
	path string
	done bool
}

// filePermissions are those of other programs' output: the machine's mask takes away what its owner wants taken away.
const filePermissions = 0o666

// Create begins a file that will stand at the path. It MUST be ended by [File.Commit] or [File.Discard].
func Create(path string) (*File, error) {
	// Under a name of this process's own beside it: only within a folder can a file be put in another's place at once.
	part := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.part", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePermissions)
	if err != nil {
		return nil, errors.Wrapf(err, "write %s", path)
	}
	return &File{File: f, path: path}, nil
}

// Commit puts the file, all of it on disk, under its name.
func (f *File) Commit() error {
	f.done = true
	err := f.Sync()
	err = errors.CombineErrors(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		err = errors.CombineErrors(err, os.Remove(f.Name()))
	}
	return errors.Wrapf(err, "write %s", f.path)
}

// Discard removes what was written; after Commit it does nothing.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Wrapf(errors.CombineErrors(f.Close(), os.Remove(f.Name())), "give up writing %s", f.path)
}
