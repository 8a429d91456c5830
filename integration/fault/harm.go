package main

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/integration/fault/schedule"
)

// harmFile flips a bit in a file, cuts it off, or removes it. It says whether there was anything to harm.
func harmFile(random *rand.Rand, path, how string) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return false, nil
	}
	if err == nil {
		switch how {
		case schedule.Flip:
			text[random.IntN(len(text))] ^= 1 << random.IntN(8)
			err = os.WriteFile(path, text, 0o600)
		case schedule.Cutoff:
			err = os.Truncate(path, int64(random.IntN(len(text))))
		case schedule.Delete:
			err = os.Remove(path)
		default:
			err = errors.AssertionFailedf("no such harm: %s", how)
		}
	}
	return err == nil, errors.Wrap(err, "harm a file")
}

// harmStream harms the largest block of a stream's messages.
func harmStream(random *rand.Rand, dir, how string) (bool, error) {
	blocks, err := filepath.Glob(filepath.Join(dir, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		return false, err
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	largest := slices.MaxFunc(blocks, func(a, b string) int { return int(size(a) - size(b)) })
	return harmFile(random, largest, how)
}

// copyTree replaces a directory, or a file, by a copy of another. What is not there, or goes while it is copied, leaves nothing.
func copyTree(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return errors.Wrap(err, "replace files")
	}
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return unlessGone(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return unlessGone(err)
		}
		copied := filepath.Join(to, strings.TrimPrefix(path, from))
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		return os.WriteFile(copied, text, 0o600)
	})
	return errors.Wrap(err, "copy files")
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// keepYesterday keeps files as they are now.
func (r *rig) keepYesterday() error {
	if err := copyTree(filepath.Dir(r.auditFile()), filepath.Join(r.yesterday, "audit")); err != nil {
		return err
	}
	return copyTree(r.servers[0].events(), filepath.Join(r.yesterday, "events"))
}
