package embedded

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
	"golang.org/x/sys/unix"

	"catenary/internal/topology"
)

const limitsFile = "limits.json"

// storeLimits is kept in the store directory. Free space changes from start to start, the streams' limits should not.
type storeLimits struct {
	MaxStoreBytes int64 `json:"max_store_bytes"`
}

// CheckAnyStore says whether a server, of [Start] or of [Serve], has kept its store in a directory, without making or changing anything. It gives ErrStore.
func CheckAnyStore(dir string) error {
	if kind, err := os.Stat(filepath.Join(dir, storeSubdirectory)); err == nil && kind.IsDir() {
		return nil
	}
	return CheckStore(dir)
}

// CheckStore says whether [Start] has kept a store in a directory, without making or changing anything. It gives ErrStore.
func CheckStore(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, limitsFile)); err != nil {
		return errors.Mark(errors.Wrapf(err, "there is no store in %s", dir), ErrStore)
	}
	return nil
}

// resolveLimits settles the size of the store and of the streams in it: what is given wins, then what the directory
// remembers, then three quarters of the free space divided by how many servers share the disk. It gives ErrStore.
func resolveLimits(c Config, sharers int) (int64, topology.Options, error) {
	path := filepath.Join(c.StoreDir, limitsFile)
	limits, advice := storeLimits{MaxStoreBytes: c.MaxStoreBytes}, "give the store a larger limit"
	if limits.MaxStoreBytes == 0 {
		advice = "the limit is max_store_bytes in " + path + ", which may be raised"
		err := readState(path, &limits)
		if errors.Is(err, fs.ErrNotExist) {
			advice = "the limit is three quarters of the disk's free space: free some, or choose another directory"
			limits.MaxStoreBytes, err = defaultStoreBytes(c.StoreDir, sharers)
		}
		if err != nil {
			return 0, topology.Options{}, errors.Mark(err, ErrStore)
		}
	}
	options, err := topology.Fit(limits.MaxStoreBytes, topology.Options{EventStoreBytes: c.EventStoreBytes, BucketBytes: c.BucketBytes})
	if err != nil {
		return 0, topology.Options{}, errors.Mark(errors.WithHint(errors.Wrapf(err, "store directory %s", c.StoreDir), advice), ErrStore)
	}
	if err := writeState(path, limits); err != nil {
		return 0, topology.Options{}, errors.Mark(err, ErrStore)
	}
	return limits.MaxStoreBytes, options, nil
}

// defaultStoreBytes leaves a quarter of the free space to everything else on the disk.
func defaultStoreBytes(dir string, sharers int) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, errors.Wrapf(err, "measure free space of %s; set the store limit by hand", dir)
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	return free / 4 * 3 / int64(sharers), nil
}

func readState(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "read the store directory's state")
	}
	return errors.Wrapf(json.Unmarshal(data, into), "read %s; repair it or remove it to start from the defaults", path)
}

// writeState replaces a small file as a whole: a crash leaves the old one or the new one.
func writeState(path string, from any) error {
	data, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return errors.Wrapf(err, "write %s", path)
	}
	temporary := path + ".new"
	if err := writeSynced(temporary, append(data, '\n')); err != nil {
		return errors.Wrapf(err, "write %s", path)
	}
	return errors.Wrapf(os.Rename(temporary, path), "write %s", path)
}

// writeSynced returns when the file is on disk: one that is renamed before that may be empty after a power loss.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, stateMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.CombineErrors(err, f.Close())
}
