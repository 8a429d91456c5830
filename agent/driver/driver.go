package driver

import (
	"context"
	"io"

	"github.com/cockroachdb/errors"

	"catenary/events"
)

// How a driver fails. An error that has neither mark is unexpected: the next driver is tried, and should all fail it is this error
// that is reported.
var (
	// ErrUnsuited means that the task is not one for this driver here. The next driver is tried.
	ErrUnsuited = errors.New("not for this driver")
	// ErrFatal means that no other driver may be tried: the node may have been changed, or the task itself is wrong.
	ErrFatal = errors.New("no other driver may be tried")
)

// Unsuited marks an error with [ErrUnsuited].
func Unsuited(err error) error { return errors.Mark(err, ErrUnsuited) }

// Fatal marks an error with [ErrFatal]. Of nil it makes nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return errors.Mark(err, ErrFatal)
}

// Task is a module on a node, as the node was told to run it.
type Task struct {
	Node, Module string
	events.Reference
	Build, Commit, Rollout string
	// Source is the sequence of the event that told it; Attempt counts the tries of it, from 1.
	Source  uint64
	Attempt int
	// Provisioning is what the node is handed besides, JSON byte for byte.
	Provisioning events.Raw
	// Inputs are what others have handed on to the module.
	Inputs []events.Handed
	// Record is the assignment's record, as JSON.
	Record []byte
	// Output takes what commands say while the task is done. Nil takes nothing.
	Output io.Writer
}

// Say gives where the task's commands say what they say. It is never nil.
func (t Task) Say() io.Writer {
	if t.Output == nil {
		return io.Discard
	}
	return t.Output
}

// Version is the text that people compare: the version of a package, or the digest of an artifact.
func (t Task) Version() string {
	if t.Package != nil {
		return t.Package.Version
	}
	return t.Artifact
}

// Compare gives what it means for the task that a version of its module runs; none is the empty version. A module may be told without a
// version, as one is that others require: whichever runs is as told then, and none can't be told from one without a name.
func (t Task) Compare(version string) Finding {
	told := t.Version()
	switch {
	case version == "" && told == "":
		return Finding{State: Unknown}
	case version == "":
		return Finding{State: Absent}
	case version == told, told == "":
		return Finding{State: AsTold}
	}
	return Finding{State: Other, Found: t.Module + " " + version + " runs"}
}

// State is what a driver finds.
type State string

// What a driver finds.
const (
	// Unknown means that the driver has no way to tell.
	Unknown State = "unknown"
	// AsTold means that just this runs.
	AsTold State = "as-told"
	// Other means that something else of the module runs.
	Other State = "other"
	// Absent means that nothing of the module is there.
	Absent State = "absent"
)

// Finding is what really runs.
type Finding struct {
	State State
	// Found says it in words, where the state is [Other].
	Found string
	// Outputs are those of the apply that brought it about, where the state is [AsTold] and the driver knows them still: an agent that was killed
	// between the two takes them from here.
	Outputs map[string]string
}

// Result is what came of an apply.
type Result struct {
	// Outputs are values for whatever waits for the module.
	Outputs map[string]string
}

// Located is a driver that knows where it has brought a module.
type Located interface {
	// Dir is the directory that a task's module is in, which need not be there; empty means where the agent runs.
	Dir(t Task) string
}

// Driver brings modules to the node it runs on. One task at a time is given to all drivers of an agent, while Observe may be called at
// any time. All methods end soon after their context, and leave nothing running that they have started for themselves.
type Driver interface {
	// Describe names the driver with its version, and the digest of its configuration.
	Describe() events.Driver
	// Check says whether the driver can do the task here, and changes nothing. It gives errors marked [ErrUnsuited], and unexpected
	// ones.
	Check(ctx context.Context, t Task) error
	// Apply brings it about that the module runs as told, whatever ran before. When it is so already it MAY do nothing. After an error what
	// ran before SHOULD run still.
	Apply(ctx context.Context, t Task) (Result, error)
	// Observe finds what really runs beside what the task says. It changes nothing.
	Observe(ctx context.Context, t Task) (Finding, error)
	// Remove takes the module away. When it is not there it does nothing.
	Remove(ctx context.Context, t Task) error
}
