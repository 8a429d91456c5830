package exec

import (
	"context"
	"io"
	"path/filepath"

	"github.com/cockroachdb/errors"

	"catenary/agent/driver"
	"catenary/agent/process"
	"catenary/events"
)

// Kind names this kind of driver in configurations.
const Kind = "exec"

// unsuited is the exit code by which a command says that it has done nothing: that of an unavailable service in sysexits.h.
const unsuited = 69

// maxFoundBytes bounds what observe may say.
const maxFoundBytes = 1 << 10

// Config is what the driver is told.
type Config struct {
	Name string `json:"name" yaml:"name"`
	// Apply brings a module to the node. It MUST be given.
	Apply []string `json:"apply" yaml:"apply"`
	// Remove takes one away. Without it a module is taken for removed.
	Remove []string `json:"remove,omitempty" yaml:"remove"`
	// CheckFirst says before each apply whether the command is the one for it.
	CheckFirst []string `json:"check,omitempty" yaml:"check"`
	// Observe says what runs. Without it nothing is known but what was applied.
	Observe []string `json:"observe,omitempty" yaml:"observe"`
	// Dir is where the commands run.
	Dir string `json:"dir,omitempty" yaml:"dir"`
}

// Driver runs commands. It is safe for use by many goroutines.
type Driver struct {
	config   Config
	describe events.Driver
	outputs  outputs
	running  process.Running
}

var (
	_ driver.Driver  = (*Driver)(nil)
	_ driver.Located = (*Driver)(nil)
)

// Running is where, in an agent's state directory, it is noted which commands of drivers of this kind run.
func Running(state string) process.Running { return process.Running(filepath.Join(state, "running")) }

// New returns a driver; state is the agent's directory, where it keeps what its commands hand on and which of them run, and version is the program's. It gives
// errors for a configuration that can't work.
func New(c Config, state, version string) (*Driver, error) {
	if c.Name == "" || len(c.Apply) == 0 {
		return nil, errors.New("an exec driver needs a name and the command apply")
	}
	digest, err := driver.ConfigDigest(c)
	if err != nil {
		return nil, err
	}
	return &Driver{config: c, describe: events.Driver{Name: c.Name, Version: version, Configuration: digest}, outputs: outputs(filepath.Join(state, "outputs")), running: Running(state)}, nil
}

// Describe implements [driver.Driver].
func (d *Driver) Describe() events.Driver { return d.describe }

// Dir implements [driver.Located]: it is where the commands run, empty for where the agent does.
func (d *Driver) Dir(driver.Task) string { return d.config.Dir }

// Check implements [driver.Driver].
func (d *Driver) Check(ctx context.Context, t driver.Task) error {
	if len(d.config.CheckFirst) == 0 {
		return nil
	}
	return passedOn(d.run(ctx, "check", d.config.CheckFirst, t, nil))
}

// Apply implements [driver.Driver].
func (d *Driver) Apply(ctx context.Context, t driver.Task) (driver.Result, error) {
	file, err := d.outputs.clear(t)
	if err != nil {
		return driver.Result{}, err
	}
	if err := passedOn(d.run(ctx, "apply", d.config.Apply, t, nil, "CATENARY_OUTPUTS="+file)); err != nil {
		return driver.Result{}, err
	}
	values, err := d.outputs.read(t)
	return driver.Result{Outputs: values}, driver.Fatal(err)
}

// passedOn says which failures another driver may be tried after.
func passedOn(err error) error {
	var failed *process.ExitError
	switch {
	case err == nil, errors.Is(err, process.ErrNotStarted):
		return err
	case errors.As(err, &failed) && failed.Code == unsuited:
		return driver.Unsuited(err)
	}
	return driver.Fatal(err)
}

// Observe implements [driver.Driver].
func (d *Driver) Observe(ctx context.Context, t driver.Task) (driver.Finding, error) {
	if len(d.config.Observe) == 0 {
		return driver.Finding{State: driver.Unknown}, nil
	}
	said := driver.Tail{Bytes: maxFoundBytes}
	if err := d.run(ctx, "observe", d.config.Observe, t, &said); err != nil {
		return driver.Finding{State: driver.Unknown}, err
	}
	found := t.Compare(said.Text(maxFoundBytes))
	if found.State != driver.AsTold {
		return found, nil
	}
	var err error
	if found.Outputs, err = d.outputs.read(t); err != nil {
		return driver.Finding{State: driver.Unknown}, err
	}
	return found, nil
}

// Remove implements [driver.Driver].
func (d *Driver) Remove(ctx context.Context, t driver.Task) error {
	if len(d.config.Remove) > 0 {
		if err := d.run(ctx, "remove", d.config.Remove, t, nil); err != nil {
			return driver.Fatal(err)
		}
	}
	return d.outputs.forget(t)
}

func (d *Driver) run(ctx context.Context, action string, args []string, t driver.Task, stdout io.Writer, more ...string) error {
	return process.Run(ctx, process.Command{
		Args: args, Dir: d.config.Dir, Stdin: t.Record, Output: t.Say(), Stdout: stdout, Running: d.running,
		Env: append(driver.Environment(action, t), more...),
	})
}
