package dir

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
	"catenary/agent/driver"
	"catenary/es"
	"catenary/events"
)

// Kind names this kind of driver in configurations.
const Kind = "dir"

// DefaultKeep is how many releases stay besides the one that is switched to: enough to go back twice.
const DefaultKeep = 3

const (
	current  = "current"
	releases = "releases"
	fetching = ".fetch"
	staging  = ".unpack"
	switched = ".current"
	packages = "packages"
	dirMode  = 0o755
)

// Config is what the driver is told.
type Config struct {
	Name string `json:"name" yaml:"name"`
	// Root is the directory below which each module has one of its own.
	Root string `json:"root" yaml:"root"`
	// Keep is how many releases stay besides the present one. Zero means DefaultKeep.
	Keep int `json:"keep,omitempty" yaml:"keep"`
	// Limits bound what is unpacked. Zero fields mean the defaults.
	Limits Limits `json:"limits,omitzero" yaml:"limits"`
}

// Source gives artifacts, and tells which ones packages are.
type Source interface {
	artifacts.Source
	artifacts.Names
}

// Driver unpacks artifacts. It is safe for use by many goroutines, of which one at a time changes a module.
type Driver struct {
	config   Config
	source   Source
	now      func() time.Time
	describe events.Driver
}

var (
	_ driver.Driver  = (*Driver)(nil)
	_ driver.Located = (*Driver)(nil)
)

// New returns a driver that gets artifacts from the source; version is the program's. The clock only says which release was left
// last. It gives errors for a configuration that can't work.
func New(c Config, source Source, now func() time.Time, version string) (*Driver, error) {
	switch {
	case c.Name == "" || !filepath.IsAbs(c.Root):
		return nil, errors.Newf("a dir driver needs a name and an absolute root, not %q", c.Root)
	case c.Keep < 0:
		return nil, errors.Newf("driver %s: keep is %d: it can't be negative", c.Name, c.Keep)
	}
	c.Keep = cmp.Or(c.Keep, DefaultKeep)
	var err error
	if c.Limits, err = c.Limits.withDefaults(); err != nil {
		return nil, errors.Wrapf(err, "driver %s", c.Name)
	}
	digest, err := driver.ConfigDigest(c)
	if err != nil {
		return nil, err
	}
	return &Driver{config: c, source: source, now: now, describe: events.Driver{Name: c.Name, Version: version, Configuration: digest}}, nil
}

// Describe implements [driver.Driver].
func (d *Driver) Describe() events.Driver { return d.describe }

// Check implements [driver.Driver]: it is for artifacts, for packages that are one, and needs a root that is there.
func (d *Driver) Check(ctx context.Context, t driver.Task) error {
	_, err := d.release(ctx, d.module(t), t)
	switch {
	case errors.IsAny(err, artifacts.ErrDigest, artifacts.ErrNotFound):
		return driver.Unsuited(err)
	case err != nil:
		return err
	}
	info, err := os.Stat(d.config.Root)
	if err != nil {
		return errors.Wrapf(err, "driver %s", d.config.Name)
	}
	if !info.IsDir() {
		return errors.Newf("driver %s: %s is no directory", d.config.Name, d.config.Root)
	}
	return nil
}

// module is the place of one module.
type module string

func (d *Driver) module(t driver.Task) module {
	return module(filepath.Join(d.config.Root, es.EscapeToken(t.Module)))
}

func (m module) path(parts ...string) string {
	return filepath.Join(append([]string{string(m)}, parts...)...)
}

// errInTheWay marks what is no link where the link has to be: nobody but who has put it there may remove it.
var errInTheWay = errors.New("move it away")

// current is the name of the release that the link names; empty when there is none. Elsewhere is where the link leads when that is none of
// the module's releases. It gives errors marked errInTheWay, and those of the file system.
func (m module) current() (name, elsewhere string, err error) {
	link := m.path(current)
	target, err := os.Readlink(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", nil
	case errors.Is(err, syscall.EINVAL):
		return "", "", errors.Mark(errors.Newf("%s is no link to a release: %v", link, errInTheWay), errInTheWay)
	case err != nil:
		return "", "", errors.Wrap(err, "read the link to the present release")
	}
	at := target
	if !filepath.IsAbs(at) {
		at = m.path(at)
	}
	if filepath.Dir(filepath.Clean(at)) != m.path(releases) {
		return "", target, nil
	}
	return filepath.Base(at), "", nil
}

// Apply implements [driver.Driver]. Until the switch, nothing that runs is touched.
func (d *Driver) Apply(ctx context.Context, t driver.Task) (driver.Result, error) {
	m := d.module(t)
	name, err := d.release(ctx, m, t)
	if err != nil {
		return driver.Result{}, err
	}
	if err := os.MkdirAll(m.path(releases), dirMode); err != nil {
		return driver.Result{}, errors.Wrap(err, "make room for releases")
	}
	if _, err := os.Stat(m.path(releases, name)); errors.Is(err, fs.ErrNotExist) {
		if err := d.unpack(ctx, m, name, t); err != nil {
			return driver.Result{}, err
		}
	} else if err != nil {
		return driver.Result{}, errors.Wrap(err, "look for the release")
	}
	if t.Package != nil {
		if err := m.remember(t.Package, name); err != nil {
			return driver.Result{}, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return driver.Result{}, errors.Wrapf(err, "switch %s", t.Module)
	}
	return driver.Result{}, driver.Fatal(d.switchTo(m, name, t))
}

// Dir implements [driver.Located]: what runs is where the link leads.
func (d *Driver) Dir(t driver.Task) string { return d.module(t).path(current) }

// unpack brings a whole release to its place.
func (d *Driver) unpack(ctx context.Context, m module, name string, t driver.Task) error {
	archive, digest := m.path(fetching), artifacts.Algorithm+name
	if err := artifacts.Fetch(ctx, d.source, digest, archive); err != nil {
		return err
	}
	err := os.RemoveAll(m.path(staging))
	if err == nil {
		err = os.Mkdir(m.path(staging), dirMode)
	}
	if err != nil {
		return errors.Wrap(err, "make room for unpacking")
	}
	if err = Unpack(ctx, archive, m.path(staging), d.config.Limits); err != nil {
		err = driver.Fatal(errors.Wrapf(err, "unpack artifact %s", digest))
		return errors.CombineErrors(err, os.RemoveAll(m.path(staging)))
	}
	err = os.Rename(m.path(staging), m.path(releases, name))
	if err == nil {
		err = syncDir(m.path(releases))
	}
	if err == nil {
		err = os.Remove(archive)
	}
	if err != nil {
		return errors.Wrap(err, "put the release in its place")
	}
	if t.Package != nil {
		say(t, "%s@%s is artifact %s", t.Package.Name, t.Package.Version, digest)
	}
	say(t, "unpacked artifact %s", digest)
	return nil
}

// switchTo lets the link name a release, in one step, and lets go of the oldest ones.
func (d *Driver) switchTo(m module, name string, t driver.Task) error {
	before, elsewhere, err := m.current()
	if err != nil {
		return err
	}
	if before != name {
		if err := m.link(current, filepath.Join(releases, name)); err != nil {
			return errors.Wrap(err, "switch to the release")
		}
		say(t, "%s leads to %s now, and to %s before", m.path(current), name, cmp.Or(before, elsewhere, "nothing"))
	} else {
		say(t, "%s leads to %s already", m.path(current), name)
	}
	return d.prune(m, name, before)
}

// link makes a link lead somewhere, in one step.
func (m module) link(name, target string) error {
	if err := os.Remove(m.path(switched)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Wrap(err, "clear an old switch away")
	}
	err := os.Symlink(target, m.path(switched))
	if err == nil {
		err = os.Rename(m.path(switched), m.path(name))
	}
	if err == nil {
		err = syncDir(filepath.Dir(m.path(name)))
	}
	return err
}

// say writes to the task's output, which is no part of the outcome.
func say(t driver.Task, format string, args ...any) {
	_, _ = fmt.Fprintf(t.Say(), format+"\n", args...)
}

// prune lets go of releases that are neither present nor among the last ones that were. The one that was just left counts as the
// latest of them.
func (d *Driver) prune(m module, present, left string) error {
	now := d.now()
	for _, name := range []string{left, present} {
		if name == "" {
			continue
		}
		if err := os.Chtimes(m.path(releases, name), now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Wrap(err, "note when a release was left")
		}
	}
	entries, err := os.ReadDir(m.path(releases))
	if err != nil {
		return errors.Wrap(err, "list the releases")
	}
	type kept struct {
		name string
		at   time.Time
	}
	var others []kept
	for _, e := range entries {
		if e.Name() == present {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return errors.Wrap(err, "list the releases")
		}
		others = append(others, kept{e.Name(), info.ModTime()})
	}
	slices.SortFunc(others, func(a, b kept) int {
		return cmp.Or(-cmp.Compare(boolInt(a.name == left), boolInt(b.name == left)), b.at.Compare(a.at), cmp.Compare(a.name, b.name))
	})
	for _, k := range others[min(d.config.Keep, len(others)):] {
		if err := os.RemoveAll(m.path(releases, k.name)); err != nil {
			return errors.Wrap(err, "let go of an old release")
		}
	}
	return m.forget()
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Observe implements [driver.Driver]: what runs is what the link names, as long as that is there.
func (d *Driver) Observe(_ context.Context, t driver.Task) (driver.Finding, error) {
	m := d.module(t)
	name, elsewhere, err := m.current()
	switch {
	case errors.Is(err, errInTheWay):
		return driver.Finding{State: driver.Other, Found: err.Error()}, nil
	case err != nil:
		return driver.Finding{State: driver.Unknown}, err
	case elsewhere != "":
		return driver.Finding{State: driver.Other, Found: "the link leads to " + elsewhere}, nil
	case name == "":
		return driver.Finding{State: driver.Absent}, nil
	}
	if _, err := os.Stat(m.path(current)); errors.Is(err, fs.ErrNotExist) {
		return driver.Finding{State: driver.Other, Found: "the link names a release that is not there: " + name}, nil
	} else if err != nil {
		return driver.Finding{State: driver.Unknown}, errors.Wrap(err, "look at the present release")
	}
	// A package of which nothing is known here was never applied here.
	want, known, err := m.known(t)
	if err != nil {
		return driver.Finding{State: driver.Unknown}, err
	}
	if known && name == want {
		return driver.Finding{State: driver.AsTold}, nil
	}
	return driver.Finding{State: driver.Other, Found: "the link names the release " + name}, nil
}

// Remove implements [driver.Driver]. The link goes first, so that nobody follows it into what is being removed.
func (d *Driver) Remove(_ context.Context, t driver.Task) error {
	m := d.module(t)
	if _, _, err := m.current(); err != nil {
		return driver.Fatal(err)
	}
	if err := os.Remove(m.path(current)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return driver.Fatal(errors.Wrap(err, "remove the link"))
	}
	return driver.Fatal(errors.Wrap(os.RemoveAll(string(m)), "remove the releases"))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.CombineErrors(d.Sync(), d.Close())
}
