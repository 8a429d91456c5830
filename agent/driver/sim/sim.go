package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/driver"
	"catenary/events"
)

// Kind names this kind of driver in configurations.
const Kind = "sim"

// Config is what the driver is told.
type Config struct {
	Name string `json:"name" yaml:"name"`
	// Takes is how long an apply takes, as a Go duration.
	Takes string `json:"takes,omitempty" yaml:"takes"`
	// Fails lists versions that can't be applied.
	Fails []string `json:"fails,omitempty" yaml:"fails"`
	// Unsuited lists modules that are not for this driver.
	Unsuited []string `json:"unsuited,omitempty" yaml:"unsuited"`
}

// World is what runs on a simulated node. It is safe for use by many goroutines. The zero value is empty.
type World struct {
	mu      sync.Mutex
	runs    map[string]string
	applies map[string][]uint64
}

// Set changes what runs by hand, as somebody on the node would; nothing is the empty version.
func (w *World) Set(module, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(module, version)
}

func (w *World) set(module, version string) {
	if w.runs == nil {
		w.runs, w.applies = map[string]string{}, map[string][]uint64{}
	}
	if version == "" {
		delete(w.runs, module)
		return
	}
	w.runs[module] = version
}

// Runs gives the version of a module that runs; empty when none does.
func (w *World) Runs(module string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[module]
}

// Applies gives the sources of the instructions that were applied to a module, in order.
func (w *World) Applies(module string) []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.applies[module])
}

// Driver changes a world.
type Driver struct {
	config   Config
	takes    time.Duration
	world    *World
	describe events.Driver
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver over a world; version is the program's. It gives errors for a configuration that can't work.
func New(c Config, world *World, version string) (*Driver, error) {
	if c.Name == "" {
		return nil, errors.New("a sim driver needs a name")
	}
	takes := time.Duration(0)
	if c.Takes != "" {
		var err error
		if takes, err = time.ParseDuration(c.Takes); err != nil || takes < 0 {
			return nil, errors.Newf("driver %s: takes is %q: give a span such as 200ms", c.Name, c.Takes)
		}
	}
	digest, err := driver.ConfigDigest(c)
	if err != nil {
		return nil, err
	}
	return &Driver{config: c, takes: takes, world: world, describe: events.Driver{Name: c.Name, Version: version, Configuration: digest}}, nil
}

// Describe implements [driver.Driver].
func (d *Driver) Describe() events.Driver { return d.describe }

// Check implements [driver.Driver].
func (d *Driver) Check(_ context.Context, t driver.Task) error {
	if slices.Contains(d.config.Unsuited, t.Module) {
		return driver.Unsuited(errors.Newf("driver %s does not know %s", d.config.Name, t.Module))
	}
	return nil
}

// Apply implements [driver.Driver].
func (d *Driver) Apply(ctx context.Context, t driver.Task) (driver.Result, error) {
	if err := d.take(ctx); err != nil {
		return driver.Result{}, err
	}
	say(t, "bringing %s to %s", t.Module, t.Version())
	if slices.Contains(d.config.Fails, t.Version()) {
		say(t, "%s %s does not start", t.Module, t.Version())
		return driver.Result{}, driver.Fatal(errors.Newf("%s %s does not start", t.Module, t.Version()))
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	d.world.set(t.Module, t.Version())
	d.world.applies[t.Module] = append(d.world.applies[t.Module], t.Source)
	return driver.Result{}, nil
}

// say writes to the task's output, which is no part of the outcome.
func say(t driver.Task, format string, args ...any) {
	_, _ = fmt.Fprintf(t.Say(), format+"\n", args...)
}

func (d *Driver) take(ctx context.Context) error {
	if d.takes == 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Observe implements [driver.Driver].
func (d *Driver) Observe(_ context.Context, t driver.Task) (driver.Finding, error) {
	return t.Compare(d.world.Runs(t.Module)), nil
}

// Remove implements [driver.Driver].
func (d *Driver) Remove(ctx context.Context, t driver.Task) error {
	if err := d.take(ctx); err != nil {
		return err
	}
	d.world.Set(t.Module, "")
	return nil
}
