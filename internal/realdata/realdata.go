package realdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/errors"
)

// Environment variables that say where the data is and whether tests may go without it.
const (
	// EnvData names the data folder. When set it must exist: a wrong setting fails a test instead of skipping it.
	EnvData = "CATENARY_DATA"
	// EnvRequire set to 1 makes missing data a failure.
	EnvRequire = "CATENARY_REQUIRE_DATA"
)

// SkipLine is what a test says when it is skipped for want of the data.
const SkipLine = "real data not found: set " + EnvData + " to its folder to run this test"

// errMissing is given when no folder above the module has the data beside it.
var errMissing = errors.New("no shared/data beside or above the module")

// Dir returns the absolute path of the data folder. Without one it skips the test, or fails it when EnvRequire is 1 or
// EnvData points to nothing.
func Dir(t testing.TB) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatalf("find the working directory: %v", err)
	}
	return dir(t, wd, os.Getenv)
}

func dir(t testing.TB, wd string, getenv func(string) string) string {
	t.Helper()
	found, err := locate(wd, getenv(EnvData))
	switch {
	case err == nil:
		return found
	case errors.Is(err, errMissing) && getenv(EnvRequire) != "1":
		t.Skip(SkipLine)
	default:
		t.Fatalf("find the real data: %v (%s=%q, %s=%q)", err, EnvData, getenv(EnvData), EnvRequire, getenv(EnvRequire))
	}
	return ""
}

// locate finds the data folder for a test that runs in wd. Its error is errMissing when there is none to find and none
// was named.
func locate(wd, named string) (string, error) {
	if named != "" {
		if !isDir(named) {
			return "", errors.Newf("%s is not a directory", named)
		}
		return filepath.Abs(named)
	}
	root, err := moduleRoot(wd)
	if err != nil {
		return "", err
	}
	for at := root; filepath.Dir(at) != at; {
		at = filepath.Dir(at)
		if candidate := filepath.Join(at, "shared", "data"); isDir(candidate) {
			return candidate, nil
		}
	}
	return "", errors.Wrapf(errMissing, "from %s upward", root)
}

// moduleRoot is the nearest folder at or above wd that has a go.mod.
func moduleRoot(wd string) (string, error) {
	for at := wd; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if filepath.Dir(at) == at {
			return "", errors.Newf("no go.mod at or above %s", wd)
		}
	}
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}
