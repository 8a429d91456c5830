package dir

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
	"catenary/agent/driver"
	"catenary/es"
	"catenary/events"
)

// named is the file that says which release a package is, by a link to it.
func named(p *events.Package) string {
	return es.EscapeToken(p.Name) + "@" + es.EscapeToken(p.Version)
}

// release gives the name of the release that the task is about: what is known here, or else what the source says. It gives errors marked
// [artifacts.ErrDigest], [artifacts.ErrNotFound] and [artifacts.ErrUnavailable].
func (d *Driver) release(ctx context.Context, m module, t driver.Task) (string, error) {
	name, known, err := m.known(t)
	if known || err != nil {
		return name, err
	}
	digest := t.Artifact
	if t.Package != nil {
		if digest, err = d.source.Named(ctx, t.Package.Name, t.Package.Version); err != nil {
			return "", errors.Wrapf(err, "driver %s takes artifacts", d.config.Name)
		}
	}
	return artifacts.ParseDigest(digest)
}

// known gives the release that the task is about as far as that is known here. What was once published under a name stays it, so a release
// that is there needs nobody to be asked.
func (m module) known(t driver.Task) (name string, known bool, err error) {
	if t.Package == nil {
		name, err := artifacts.ParseDigest(t.Artifact)
		return name, err == nil, nil
	}
	target, err := os.Readlink(m.path(packages, named(t.Package)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, errors.Wrap(err, "read which release a package is")
	}
	return filepath.Base(target), true, nil
}

// remember notes which release a package is, so that what runs can be told without asking anybody.
func (m module) remember(p *events.Package, name string) error {
	err := os.MkdirAll(m.path(packages), dirMode)
	if err == nil {
		err = m.link(filepath.Join(packages, named(p)), filepath.Join("..", releases, name))
	}
	return errors.Wrap(err, "note which release a package is")
}

// forget lets go of the names of releases that are not kept.
func (m module) forget() error {
	entries, err := os.ReadDir(m.path(packages))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Wrap(err, "list the packages")
	}
	for _, e := range entries {
		if _, err := os.Stat(m.path(packages, e.Name())); errors.Is(err, fs.ErrNotExist) {
			if err := os.Remove(m.path(packages, e.Name())); err != nil {
				return errors.Wrap(err, "let go of the name of an old release")
			}
		}
	}
	return nil
}
