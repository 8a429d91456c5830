package agent

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/driver"
	"catenary/commands"
	"catenary/events"
	"catenary/internal/failpoint"
)

// tailBytes is how much of a command's output is kept for the report of its failure.
const tailBytes = 8 << 10

// Logs keeps what is said while something is done. It MAY be called by many goroutines at once.
type Logs interface {
	// Open begins the log of a span. Writing to it MUST NOT fail a deed: what can't be kept is left out, and that is noted in it.
	Open(s Span) io.WriteCloser
}

// Span is one try of one deed.
type Span struct {
	Node, Module, Rollout string
	Source                uint64
	Attempt               int
	Deed                  Deed
}

// delivery does deeds by drivers.
type delivery struct {
	node    string
	drivers []driver.Driver
	logs    Logs
	// looks bounds one look at what runs.
	looks time.Duration
	log   *slog.Logger
}

// names lists the drivers.
func (d *delivery) names() []string {
	var names []string
	for _, dr := range d.drivers {
		names = append(names, dr.Describe().Name)
	}
	return names
}

func (d *delivery) named(name string) (driver.Driver, bool) {
	i := slices.IndexFunc(d.drivers, func(dr driver.Driver) bool { return dr.Describe().Name == name })
	if i < 0 {
		return nil, false
	}
	return d.drivers[i], true
}

// tried gives the drivers to try for an instruction, in order, and the names of those that this agent does not have.
func (d *delivery) tried(i Instruction) (found []driver.Driver, missing []string) {
	names := i.drivers()
	if len(names) == 0 {
		return d.drivers, nil
	}
	for _, name := range names {
		if dr, ok := d.named(name); ok {
			found = append(found, dr)
		} else {
			missing = append(missing, name)
		}
	}
	return found, missing
}

// result is what came of an action.
type result struct {
	action Action
	done   Done
	// found is set where the action was to be settled.
	found driver.Finding
	// interrupted says that the agent was told to stop before there was an outcome.
	interrupted bool
}

// do does an action.
func (d *delivery) do(ctx context.Context, a Action) result {
	i := a.Instruction
	doing, cancel := context.WithTimeout(ctx, i.timeout())
	defer cancel()
	if a.Settle {
		found, by := d.settle(doing, a)
		return result{action: a, found: found, done: Done{Driver: by, Outputs: found.Outputs}, interrupted: ctx.Err() != nil && found.State == driver.Unknown}
	}
	tail := &driver.Tail{Bytes: tailBytes}
	task := i.task(d.node, a.Attempt)
	out, end := d.output(a, tail)
	task.Output = out
	var done Done
	var err error
	switch a.Deed {
	case Apply:
		done, err = d.apply(doing, a, task)
	case Remove:
		done, err = d.remove(doing, a, task)
	}
	end()
	if err != nil && doing.Err() != nil && ctx.Err() == nil {
		err = errors.Wrapf(err, "it took longer than %v", i.timeout())
	}
	if err != nil {
		done.Failure = failure(err, tail)
	}
	return result{action: a, done: done, interrupted: err != nil && ctx.Err() != nil}
}

// output gives where a deed's commands say what they say.
func (d *delivery) output(a Action, tail *driver.Tail) (io.Writer, func()) {
	if d.logs == nil {
		return tail, func() {}
	}
	i := a.Instruction
	kept := d.logs.Open(Span{Node: d.node, Module: i.Module, Rollout: i.Rollout, Source: i.Source, Attempt: a.Attempt, Deed: a.Deed})
	return io.MultiWriter(tail, kept), func() {
		if err := kept.Close(); err != nil {
			d.log.Warn("what a command said is not all kept", "module", i.Module, "error", err)
		}
	}
}

// failure says why a deed failed, with the last lines of output.
func failure(err error, tail *driver.Tail) string {
	reason := cut(driver.Printable(err.Error()), commands.MaxTextBytes/2)
	if said := tail.Text(commands.MaxTextBytes - len(reason) - 1); said != "" {
		reason += "\n" + said
	}
	return reason
}

// apply tries the drivers in order until one has done it. One that fails for good ends it; if none has done it, the first failure
// that was not expected is the one that counts.
func (d *delivery) apply(ctx context.Context, a Action, task driver.Task) (Done, error) {
	found, missing := d.tried(a.Instruction)
	var unsuited []string
	for _, name := range missing {
		const none = "this agent has none of that name"
		d.log.Info("a driver is passed over", "module", task.Module, "driver", name, "reason", none)
		unsuited = append(unsuited, name+": "+none)
	}
	var first error
	var firstBy *events.Driver
	for _, dr := range found {
		by := dr.Describe()
		if failpoint.Planted(failpoint.ApplySkipped) && a.Instruction.Source%3 == 0 {
			return Done{Driver: &by}, nil
		}
		outputs, err := applyBy(ctx, dr, task)
		switch {
		case err == nil:
			return Done{Driver: &by, Outputs: outputs}, d.relieve(ctx, a, by, task)
		case errors.Is(err, driver.ErrFatal), ctx.Err() != nil:
			d.log.Warn("a driver has failed, and no other is tried", "module", task.Module, "driver", by.Name, "reason", err)
			return Done{Driver: &by}, errors.Wrapf(err, "driver %s", by.Name)
		case errors.Is(err, driver.ErrUnsuited):
			d.log.Info("a driver is passed over", "module", task.Module, "driver", by.Name, "reason", err)
			unsuited = append(unsuited, by.Name+": "+err.Error())
		default:
			d.log.Warn("a driver has failed, the next one is tried", "module", task.Module, "driver", by.Name, "reason", err)
			if first == nil {
				first, firstBy = errors.Wrapf(err, "driver %s", by.Name), &by
			}
		}
	}
	if first == nil {
		first = errors.Newf("no driver is the one for %s: %s", task.Module, orNone(unsuited))
	}
	return Done{Driver: firstBy}, first
}

func orNone(reasons []string) string {
	if len(reasons) == 0 {
		return "this agent has none"
	}
	return strings.Join(reasons, "; ")
}

func applyBy(ctx context.Context, dr driver.Driver, task driver.Task) (map[string]string, error) {
	if err := dr.Check(ctx, task); err != nil {
		return nil, err
	}
	r, err := dr.Apply(ctx, task)
	if err != nil {
		return nil, err
	}
	// Others would be told without what they wait for: it is brought about, and yet it has failed.
	return r.Outputs, driver.Fatal(commands.CheckOutputs(r.Outputs))
}

// relieve takes away what another driver had brought before.
func (d *delivery) relieve(ctx context.Context, a Action, by events.Driver, task driver.Task) error {
	if a.By == "" || a.By == by.Name {
		return nil
	}
	former, ok := d.named(a.By)
	if !ok {
		d.log.Warn("what a former driver has brought is still there: this agent does not have it any more", "module", task.Module, "driver", a.By)
		return nil
	}
	return errors.Wrapf(former.Remove(ctx, task), "driver %s has brought %s; taking away what driver %s had brought", by.Name, task.Module, a.By)
}

// remove takes a module away by the driver that brought it. Where that is not known, every driver that may have done it is asked.
func (d *delivery) remove(ctx context.Context, a Action, task driver.Task) (Done, error) {
	if a.By != "" {
		dr, ok := d.named(a.By)
		if !ok {
			return Done{}, errors.Newf("driver %s has brought %s, and this agent does not have it any more: put it back into the agent's configuration", a.By, task.Module)
		}
		by := dr.Describe()
		return Done{Driver: &by}, errors.Wrapf(dr.Remove(ctx, task), "driver %s", by.Name)
	}
	var done Done
	found, _ := d.tried(a.Instruction)
	for _, dr := range found {
		by := dr.Describe()
		there, err := dr.Observe(ctx, task)
		if err == nil && there.State == driver.Absent {
			continue
		}
		if err := dr.Remove(ctx, task); err != nil {
			return Done{Driver: &by}, errors.Wrapf(err, "driver %s", by.Name)
		}
		done.Driver = &by
	}
	return done, nil
}

// settle finds out what came of a deed that was begun: whether one of the drivers that may have been at it finds it done.
func (d *delivery) settle(ctx context.Context, a Action) (driver.Finding, *events.Driver) {
	task := a.Instruction.task(d.node, a.Attempt)
	found, _ := d.tried(a.Instruction)
	if dr, ok := d.named(a.By); ok && a.Deed == Remove {
		found = []driver.Driver{dr}
	}
	absent := true
	for _, dr := range found {
		by := dr.Describe()
		there, err := dr.Observe(ctx, task)
		if err != nil {
			d.log.Warn("what came of a deed that was begun can't be found out", "module", task.Module, "driver", by.Name, "error", err)
			there.State = driver.Unknown
		}
		switch there.State {
		case driver.AsTold:
			if a.Deed == Apply && d.leftBy(ctx, a.By, by.Name, task) {
				return driver.Finding{State: driver.Unknown}, nil
			}
			return there, &by
		case driver.Unknown, driver.Other:
			absent = false
		case driver.Absent:
		}
	}
	if absent {
		return driver.Finding{State: driver.Absent}, nil
	}
	return driver.Finding{State: driver.Unknown}, nil
}

// leftBy says whether a former driver may have left something, once another has brought the module: an agent may have been killed before that
// was taken away.
func (d *delivery) leftBy(ctx context.Context, former, by string, task driver.Task) bool {
	dr, ok := d.named(former)
	if !ok || former == by {
		return false
	}
	there, err := dr.Observe(ctx, task)
	return err != nil || there.State != driver.Absent
}

// dir is the directory that what was applied is in; empty where that is not known.
func (d *delivery) dir(applied Applied) string {
	dr, _ := d.named(applied.Driver.Name)
	if l, ok := dr.(driver.Located); ok {
		return l.Dir(applied.Instruction.task(d.node, 1))
	}
	return ""
}

// observe finds what really runs of what was applied. A driver that gives no answer in time is one that can't tell.
func (d *delivery) observe(ctx context.Context, applied Applied) (driver.Finding, error) {
	dr, ok := d.named(applied.Driver.Name)
	if !ok {
		return driver.Finding{State: driver.Unknown}, errors.Newf("this agent has no driver %s any more", applied.Driver.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, d.looks)
	defer cancel()
	return dr.Observe(ctx, applied.Instruction.task(d.node, 1))
}
