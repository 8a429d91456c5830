package embedded

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
)

// restoringFile stands in a store directory while a backup is being restored into it. What is in it is not all of a chain then, and may be
// nothing yet, which a start would take for a chain that is to begin.
const restoringFile = "RESTORING"

// BeginRestore makes a store directory, if it is not there, and marks it: until [EndRestore] nobody but a server that is to restore starts
// over it. It gives ErrStore.
func BeginRestore(dir string) error {
	err := os.MkdirAll(dir, dirMode)
	if err == nil {
		err = writeSynced(filepath.Join(dir, restoringFile), nil)
	}
	if err == nil {
		err = syncDir(dir)
	}
	return errors.Mark(errors.Wrapf(err, "make the store directory %s", dir), ErrStore)
}

// EndRestore takes the mark off. It gives ErrStore.
func EndRestore(dir string) error {
	err := os.Remove(filepath.Join(dir, restoringFile))
	if err == nil {
		err = syncDir(dir)
	}
	return errors.Mark(errors.Wrapf(err, "end the restore into %s", dir), ErrStore)
}

// Restoring says whether a directory is marked. It gives ErrStore.
func Restoring(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, errors.Mark(errors.Wrapf(err, "look at the store directory %s", dir), ErrStore)
}

// checkRestored makes sure that what is in a directory is all of it.
func checkRestored(dir string) error {
	marked, err := Restoring(dir)
	if err != nil || !marked {
		return err
	}
	err = errors.Mark(errors.Newf("a backup was being restored into %s, and that has not ended", dir), ErrStore)
	return errors.WithHint(err, "restore the same backup again, which goes on where it stopped; or remove the directory")
}

// syncDir returns when what was made in a directory, or removed from it, is on disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.CombineErrors(d.Sync(), d.Close())
}
