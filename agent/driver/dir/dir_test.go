package dir_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
	"catenary/agent/driver"
	"catenary/agent/driver/dir"
	"catenary/agent/driver/drivertest"
	"catenary/events"
)

// store is a source of artifacts in memory that counts what was asked of it.
type store struct {
	mu      sync.Mutex
	content map[string][]byte
	opened  int
	names   map[string]string
}

func (s *store) add(content []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	if s.content == nil {
		s.content = map[string][]byte{}
	}
	s.content[digest] = content
	return digest
}

// call gives content the name of a package, and the package.
func (s *store) call(name, version string, content []byte) events.Reference {
	digest := s.add(content)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]string{}
	}
	s.names[name+"@"+version] = digest
	return events.Reference{Package: &events.Package{Name: name, Version: version}}
}

func (s *store) Named(_ context.Context, name, version string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if digest, ok := s.names[name+"@"+version]; ok {
		return digest, nil
	}
	return "", errors.Mark(errors.New("there is no such name"), artifacts.ErrNotFound)
}

func (s *store) Open(_ context.Context, digest string, from int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	content, ok := s.content[digest]
	if !ok {
		return nil, errors.Mark(errors.New("there is none"), artifacts.ErrNotFound)
	}
	return io.NopCloser(bytes.NewReader(content[from:])), nil
}

func open(t *testing.T, root string, source dir.Source, keep int) *dir.Driver {
	t.Helper()
	clock := time.Unix(1_000_000, 0)
	d, err := dir.New(dir.Config{Name: "files", Root: root, Keep: keep}, source, func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	}, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func tarGz(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		content := []byte(e.PAXRecords["content"])
		e.PAXRecords = nil
		e.Size = int64(len(content))
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.CombineErrors(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: map[string]string{"content": content}}
}

// release is an artifact that says its version in a file.
func release(t *testing.T, version string) []byte {
	return tarGz(t, tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, file("bin/version", version))
}

func TestSuite(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		root, source := t.TempDir(), &store{}
		return drivertest.Subject{
			Open: func(t *testing.T) driver.Driver { return open(t, root, source, 1) },
			Version: func(t *testing.T, task *driver.Task, version int) {
				content := release(t, fmt.Sprint(version))
				if version == 3 {
					content = tarGz(t, file("../FAILS", "outside"))
				}
				task.Artifact = source.add(content)
			},
			Unsuited: func(task *driver.Task) {
				task.Reference = events.Reference{Package: &events.Package{Name: "web", Version: "2"}}
			},
		}
	})
}

// TestPackages holds the driver to the suite with packages, each of which is the name of an artifact.
func TestPackages(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		root, source := t.TempDir(), &store{}
		return drivertest.Subject{
			Open: func(t *testing.T) driver.Driver { return open(t, root, source, 1) },
			Version: func(t *testing.T, task *driver.Task, version int) {
				content := release(t, fmt.Sprint(version))
				if version == 3 {
					content = tarGz(t, file("../FAILS", "outside"))
				}
				task.Reference = source.call("web/ü", fmt.Sprint(version), content)
			},
			Unsuited: func(task *driver.Task) { task.Reference = events.Reference{Artifact: "web@2"} },
		}
	})
}

// TestGoesBackToAPackageWithoutAsking: a release that is kept is known by the name of its package, and one that is not kept is asked for anew.
func TestGoesBackToAPackageWithoutAsking(t *testing.T) {
	t.Parallel()
	root, source := t.TempDir(), &store{}
	d := open(t, root, source, 1)
	var all []driver.Task
	for i := range 3 {
		version := fmt.Sprint(i)
		all = append(all, driver.Task{Module: "web", Reference: source.call("web", version, release(t, version))})
		if _, err := d.Apply(t.Context(), all[i]); err != nil {
			t.Fatalf("%+v", err)
		}
	}
	source.mu.Lock()
	source.names = nil
	source.mu.Unlock()
	if _, err := d.Apply(t.Context(), all[1]); err != nil {
		t.Errorf("back to what is kept: %+v", err)
	}
	if err := d.Check(t.Context(), all[0]); !errors.Is(err, driver.ErrUnsuited) {
		t.Errorf("what is not kept, and has no name any more: got error %v", err)
	}
	if found, err := d.Observe(t.Context(), all[1]); err != nil || found.State != driver.AsTold {
		t.Errorf("it finds %+v, %v", found, err)
	}
}

func task(module, artifact string) driver.Task {
	return driver.Task{Module: module, Reference: events.Reference{Artifact: artifact}}
}

func apply(t *testing.T, d driver.Driver, artifact string) {
	t.Helper()
	if _, err := d.Apply(t.Context(), task("web", artifact)); err != nil {
		t.Fatalf("%+v", err)
	}
}

func releasesIn(t *testing.T, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "web", "releases"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, "sha256:"+e.Name())
	}
	return names
}

// TestKeepsTheLastOnes walks over many releases: the present one and the last two that ran stay, and going back to one of them needs
// no archive.
func TestKeepsTheLastOnes(t *testing.T) {
	t.Parallel()
	root, source := t.TempDir(), &store{}
	d := open(t, root, source, 2)
	var all []string
	for i := range 5 {
		all = append(all, source.add(release(t, fmt.Sprint("v", i))))
		apply(t, d, all[i])
	}
	want := slices.Sorted(slices.Values(all[2:]))
	if got := releasesIn(t, root); !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	asked := source.opened
	apply(t, d, all[2])
	got, err := os.ReadFile(filepath.Join(root, "web", "current", "bin", "version"))
	if err != nil || string(got) != "v2" || source.opened != asked {
		t.Errorf("back at %q, %v, and the source was asked %d times more", got, err, source.opened-asked)
	}
	apply(t, d, all[0])
	if want := slices.Sorted(slices.Values([]string{all[0], all[2], all[4]})); !slices.Equal(releasesIn(t, root), want) {
		t.Errorf("kept %v, want the present one and the two that were present last: %v", releasesIn(t, root), want)
	}
}

// TestKilledInTheMiddle leaves behind what a process leaves that was killed: a part of an archive, a part of a release, a new link.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	root, source := t.TempDir(), &store{}
	content := release(t, "new")
	old, fresh := source.add(release(t, "old")), source.add(content)
	d := open(t, root, source, 1)
	apply(t, d, old)
	module := filepath.Join(root, "web")
	for name, text := range map[string]string{".fetch": string(content[:10]), ".unpack/bin/half": "half"} {
		at := filepath.Join(module, name)
		if err := errors.CombineErrors(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("releases/nowhere", filepath.Join(module, ".current")); err != nil {
		t.Fatal(err)
	}
	apply(t, d, fresh)
	got, err := os.ReadFile(filepath.Join(module, "current", "bin", "version"))
	if err != nil || string(got) != "new" {
		t.Errorf("it runs %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(module, "current", "bin", "half")); err == nil {
		t.Error("what was left of another try is in the release")
	}
	entries, err := os.ReadDir(module)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestWhatDoesNotMatchIsNotApplied(t *testing.T) {
	t.Parallel()
	root, source := t.TempDir(), &store{}
	old, forged := source.add(release(t, "old")), source.add(release(t, "new"))
	source.content[forged] = release(t, "forged")
	d := open(t, root, source, 1)
	apply(t, d, old)
	if _, err := d.Apply(t.Context(), task("web", forged)); !errors.Is(err, artifacts.ErrMismatch) {
		t.Errorf("got error %v", err)
	}
	if got := releasesIn(t, root); !slices.Equal(got, []string{old}) {
		t.Errorf("there are %v", got)
	}
}

// TestDriftOfTheLink finds what somebody has done by hand.
func TestDriftOfTheLink(t *testing.T) {
	t.Parallel()
	root, source := t.TempDir(), &store{}
	told := source.add(release(t, "told"))
	d := open(t, root, source, 1)
	apply(t, d, told)
	link := filepath.Join(root, "web", "current")
	if err := errors.CombineErrors(os.Remove(link), os.Symlink("releases/by-hand", link)); err != nil {
		t.Fatal(err)
	}
	found, err := d.Observe(t.Context(), task("web", told))
	if err != nil || found.State != driver.Other || !strings.Contains(found.Found, "by-hand") {
		t.Errorf("found %+v, %v", found, err)
	}
	apply(t, d, told)
	if found, err = d.Observe(t.Context(), task("web", told)); err != nil || found.State != driver.AsTold {
		t.Errorf("mended, it finds %+v, %v", found, err)
	}
}

// TestSomethingElseInTheLinksPlace: what the link leads to is looked at whole, and what is no link is found, and left to who has put it there.
func TestSomethingElseInTheLinksPlace(t *testing.T) {
	t.Parallel()
	root, source := t.TempDir(), &store{}
	d := open(t, root, source, 0)
	one, two := source.add(release(t, "1")), source.add(release(t, "2"))
	link := filepath.Join(root, "web", "current")
	put := map[string]func() error{
		"the same name elsewhere": func() error { return os.Symlink(filepath.Join(t.TempDir(), strings.TrimPrefix(one, "sha256:")), link) },
		"a directory":             func() error { return os.MkdirAll(filepath.Join(link, "bin"), 0o755) },
		"a file":                  func() error { return os.WriteFile(link, []byte("mine"), 0o644) },
	}
	for name, put := range put {
		apply(t, d, one)
		if err := errors.CombineErrors(os.Remove(link), put()); err != nil {
			t.Fatal(err)
		}
		found, err := d.Observe(t.Context(), task("web", one))
		if err != nil || found.State != driver.Other || !strings.Contains(found.Found, "link") {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		_, applied := d.Apply(t.Context(), task("web", two))
		removed := d.Remove(t.Context(), task("web", two))
		if name == "the same name elsewhere" {
			if applied != nil || removed != nil {
				t.Errorf("%s: apply gives %v, remove %v", name, applied, removed)
			}
			continue
		}
		for _, err := range []error{applied, removed} {
			if !errors.Is(err, driver.ErrFatal) || !strings.Contains(err.Error(), link+" is no link to a release: move it away") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]dir.Config{
		"no name":         {Root: "/x"},
		"a relative root": {Name: "d", Root: "x"},
		"keeps less":      {Name: "d", Root: "/x", Keep: -1},
		"limits":          {Name: "d", Root: "/x", Limits: dir.Limits{Bytes: -1}},
	} {
		if _, err := dir.New(c, nil, time.Now, "1"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	d := open(t, filepath.Join(t.TempDir(), "nowhere"), &store{}, 1)
	if err := d.Check(t.Context(), task("web", (&store{}).add(nil))); err == nil || errors.Is(err, driver.ErrUnsuited) {
		t.Errorf("a root that is not there: got error %v", err)
	}
}
