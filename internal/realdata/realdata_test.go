package realdata

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// verdict is a testing.TB that notes how a test would have ended.
type verdict struct {
	testing.TB
	skipped, failed string
}

func (v *verdict) Helper() {}

func (v *verdict) Skip(args ...any) {
	v.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// run calls dir as a test would, in a goroutine that skipping or failing may end.
func run(t *testing.T, wd string, env map[string]string) (string, *verdict) {
	t.Helper()
	v := &verdict{TB: t}
	var got string
	done := make(chan struct{})
	go func() {
		defer close(done)
		got = dir(v, wd, func(name string) string { return env[name] })
	}()
	<-done
	return got, v
}

// layout makes base/<module>/pkg with a go.mod in the module, and returns base and pkg.
func layout(t *testing.T, module string) (base, pkg string) {
	t.Helper()
	base = t.TempDir()
	pkg = filepath.Join(base, module, "pkg")
	mkdir(t, pkg)
	if err := os.WriteFile(filepath.Join(base, module, "go.mod"), []byte("module m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return base, pkg
}

func mkdir(t *testing.T, p string) string {
	t.Helper()
	if err := os.MkdirAll(p, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDirFindsTheFolderAboveTheModule(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"main", filepath.Join("clones", "deep", "main")} {
		base, pkg := layout(t, module)
		want := mkdir(t, filepath.Join(base, "shared", "data"))
		got, v := run(t, pkg, nil)
		if got != want || v.skipped != "" || v.failed != "" {
			t.Errorf("module at %s: got %q (skipped %q, failed %q), want %q", module, got, v.skipped, v.failed, want)
		}
	}
}

func TestDirPrefersTheNamedFolder(t *testing.T) {
	t.Parallel()
	base, pkg := layout(t, "main")
	mkdir(t, filepath.Join(base, "shared", "data"))
	want := mkdir(t, filepath.Join(base, "elsewhere"))
	if got, v := run(t, pkg, map[string]string{EnvData: want}); got != want {
		t.Errorf("got %q (failed %q), want %q", got, v.failed, want)
	}
}

// A folder inside the module is not the data: the project commits none.
func TestDirLooksOutsideTheModule(t *testing.T) {
	t.Parallel()
	base, pkg := layout(t, "main")
	mkdir(t, filepath.Join(base, "main", "shared", "data"))
	if got, v := run(t, pkg, nil); v.skipped != SkipLine {
		t.Errorf("got %q (failed %q), want the test skipped", got, v.failed)
	}
}

func TestDirWithoutData(t *testing.T) {
	t.Parallel()
	_, pkg := layout(t, "main")
	outside := t.TempDir()
	cases := []struct {
		name       string
		wd         string
		env        map[string]string
		skip, fail string
	}{
		{name: "skips", wd: pkg, skip: SkipLine},
		{name: "skips unless the requirement is 1", wd: pkg, env: map[string]string{EnvRequire: "0"}, skip: SkipLine},
		{name: "fails when required", wd: pkg, env: map[string]string{EnvRequire: "1"}, fail: "no shared/data beside or above the module"},
		{name: "fails when the named folder is missing", wd: pkg, env: map[string]string{EnvData: filepath.Join(outside, "none")}, fail: "is not a directory"},
		{name: "fails outside a module", wd: outside, fail: "no go.mod at or above"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, v := run(t, c.wd, c.env)
			if got != "" || v.skipped != c.skip || (c.fail == "") != (v.failed == "") || !strings.Contains(v.failed, c.fail) {
				t.Errorf("got %q, skipped %q, failed %q; want skipped %q, failed with %q", got, v.skipped, v.failed, c.skip, c.fail)
			}
		})
	}
}

// TestDirOfThisTree runs the exported function itself: it finds the data, or skips this test with the same line as others.
func TestDirOfThisTree(t *testing.T) {
	t.Parallel()
	if got := Dir(t); !filepath.IsAbs(got) || !isDir(got) {
		t.Errorf("Dir gave %q, want the absolute path of a folder", got)
	}
}
