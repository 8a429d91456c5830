package systemd

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/driver"
	"catenary/agent/process"
	"catenary/es"
	"catenary/events"
)

// Kind names this kind of driver in configurations.
const Kind = "systemd"

// Defaults of a configuration.
const (
	DefaultUnits     = "/etc/systemd/system"
	DefaultSystemctl = "systemctl"
	DefaultPrefix    = "catenary-"
)

const (
	fileMode = 0o644
	// saidBytes bounds what is kept of what systemctl says.
	saidBytes = 4 << 10
	// putBackWithin bounds putting the unit before back, for which the time of the apply may be over.
	putBackWithin = 30 * time.Second
)

// Config is what the driver is told.
type Config struct {
	Name string `json:"name" yaml:"name"`
	// Unit is the unit file as a Go text/template. It knows .Node, .Module, .Version, .Artifact, .Build, .Commit, .Rollout, .Source and .Provisioning.
	Unit string `json:"unit" yaml:"unit"`
	// Prefix begins the name of each unit; the module's name follows, escaped. Default: DefaultPrefix.
	Prefix string `json:"prefix,omitempty" yaml:"prefix"`
	// Units is the directory of unit files. Default: DefaultUnits.
	Units string `json:"units,omitempty" yaml:"units"`
	// Systemctl is the program, with arguments that stand before all others, such as --user. Default: DefaultSystemctl.
	Systemctl []string `json:"systemctl,omitempty" yaml:"systemctl"`
}

// Driver writes unit files. It is safe for use by many goroutines, of which one at a time changes a module.
type Driver struct {
	config   Config
	unit     *template.Template
	describe events.Driver
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver; version is the program's. It gives errors for a configuration that can't work.
func New(c Config, version string) (*Driver, error) {
	c.Prefix, c.Units = cmp.Or(c.Prefix, DefaultPrefix), cmp.Or(c.Units, DefaultUnits)
	if len(c.Systemctl) == 0 {
		c.Systemctl = []string{DefaultSystemctl}
	}
	switch {
	case c.Name == "" || strings.TrimSpace(c.Unit) == "":
		return nil, errors.New("a systemd driver needs a name and a unit")
	case !filepath.IsAbs(c.Units):
		return nil, errors.Newf("driver %s: units is %q: it must be an absolute path", c.Name, c.Units)
	}
	unit, err := template.New(c.Name).Option("missingkey=error").Parse(c.Unit)
	if err != nil {
		return nil, errors.Wrapf(err, "driver %s: unit", c.Name)
	}
	digest, err := driver.ConfigDigest(c)
	if err != nil {
		return nil, err
	}
	d := &Driver{config: c, unit: unit, describe: events.Driver{Name: c.Name, Version: version, Configuration: digest}}
	_, err = d.render(driver.Task{Node: "node", Module: "module"})
	return d, err
}

// Describe implements [driver.Driver].
func (d *Driver) Describe() events.Driver { return d.describe }

// name is the unit of a module. Bytes that systemd does not take in a name are escaped.
func (d *Driver) name(module string) string {
	return d.config.Prefix + strings.ReplaceAll(es.EscapeToken(module), "=", `\x`) + ".service"
}

func (d *Driver) path(module string) string { return filepath.Join(d.config.Units, d.name(module)) }

func (d *Driver) render(t driver.Task) ([]byte, error) {
	var b bytes.Buffer
	err := d.unit.Execute(&b, map[string]any{
		"Node": t.Node, "Module": t.Module, "Version": t.Version(), "Artifact": t.Artifact, "Build": t.Build, "Commit": t.Commit,
		"Rollout": t.Rollout, "Source": t.Source, "Provisioning": string(t.Provisioning),
	})
	return b.Bytes(), errors.Wrapf(err, "driver %s: unit of %s", d.config.Name, t.Module)
}

// Check implements [driver.Driver]: systemctl and the directory of unit files must be there.
func (d *Driver) Check(_ context.Context, _ driver.Task) error {
	if _, err := exec.LookPath(d.config.Systemctl[0]); err != nil {
		return driver.Unsuited(errors.Wrap(err, "there is no systemd"))
	}
	if info, err := os.Stat(d.config.Units); err != nil || !info.IsDir() {
		return driver.Unsuited(errors.CombineErrors(errors.Newf("%s is no directory of unit files", d.config.Units), err))
	}
	return nil
}

// Apply implements [driver.Driver]. When the unit does not come up, the one before is put back.
func (d *Driver) Apply(ctx context.Context, t driver.Task) (driver.Result, error) {
	unit, err := d.render(t)
	if err != nil {
		return driver.Result{}, driver.Fatal(err)
	}
	before, err := os.ReadFile(d.path(t.Module))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return driver.Result{}, errors.Wrap(err, "read the unit file")
	}
	if err := context.Cause(ctx); err != nil {
		return driver.Result{}, err
	}
	if err := writeFile(d.path(t.Module), unit); err != nil {
		return driver.Result{}, err
	}
	if err := d.start(ctx, t); err != nil {
		back := d.putBack(context.WithoutCancel(ctx), t, before)
		return driver.Result{}, driver.Fatal(errors.CombineErrors(err, errors.Wrap(back, "put the unit before back")))
	}
	return driver.Result{}, nil
}

func (d *Driver) start(ctx context.Context, t driver.Task) error {
	for _, args := range [][]string{{"daemon-reload"}, {"enable", d.name(t.Module)}, {"restart", d.name(t.Module)}, {"is-active", d.name(t.Module)}} {
		if err := d.systemctl(ctx, t, nil, args...); err != nil {
			return err
		}
	}
	return nil
}

// putBack makes a module what it was before an apply that failed.
func (d *Driver) putBack(ctx context.Context, t driver.Task, before []byte) error {
	ctx, cancel := context.WithTimeout(ctx, putBackWithin)
	defer cancel()
	if before == nil {
		return d.Remove(ctx, t)
	}
	if err := writeFile(d.path(t.Module), before); err != nil {
		return err
	}
	return d.start(ctx, t)
}

func (d *Driver) systemctl(ctx context.Context, t driver.Task, said *driver.Tail, args ...string) error {
	c := process.Command{Args: append(append([]string{}, d.config.Systemctl...), args...), Output: t.Say()}
	if said != nil {
		c.Stdout = said
	}
	return errors.Wrapf(process.Run(ctx, c), "systemctl %s", strings.Join(args, " "))
}

// Observe implements [driver.Driver]: the unit file is as it would be written now, and the unit is active.
func (d *Driver) Observe(ctx context.Context, t driver.Task) (driver.Finding, error) {
	want, err := d.render(t)
	if err != nil {
		return driver.Finding{State: driver.Unknown}, err
	}
	found, err := os.ReadFile(d.path(t.Module))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return driver.Finding{State: driver.Absent}, nil
	case err != nil:
		return driver.Finding{State: driver.Unknown}, errors.Wrap(err, "read the unit file")
	case !bytes.Equal(found, want):
		return driver.Finding{State: driver.Other, Found: "the unit file " + d.path(t.Module) + " is another one"}, nil
	}
	said := driver.Tail{Bytes: saidBytes}
	err = d.systemctl(ctx, t, &said, "is-active", d.name(t.Module))
	var inactive *process.ExitError
	switch {
	case errors.As(err, &inactive):
		return driver.Finding{State: driver.Other, Found: "the unit " + d.name(t.Module) + " is " + cmp.Or(said.Text(saidBytes), "not active")}, nil
	case err != nil:
		return driver.Finding{State: driver.Unknown}, err
	}
	return driver.Finding{State: driver.AsTold}, nil
}

// Remove implements [driver.Driver].
func (d *Driver) Remove(ctx context.Context, t driver.Task) error {
	if _, err := os.Stat(d.path(t.Module)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := d.systemctl(ctx, t, nil, "disable", "--now", d.name(t.Module)); err != nil {
		return driver.Fatal(err)
	}
	if err := os.Remove(d.path(t.Module)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return driver.Fatal(errors.Wrap(err, "remove the unit file"))
	}
	return driver.Fatal(d.systemctl(ctx, t, nil, "daemon-reload"))
}

// writeFile replaces a file in one step. It is on disk when this returns.
func writeFile(path string, content []byte) error {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return errors.Wrap(err, "write the unit file")
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.CombineErrors(err, file.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	return errors.Wrap(err, "write the unit file")
}
