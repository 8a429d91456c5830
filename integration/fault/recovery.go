package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/commands"
	"catenary/events"
	"catenary/integration/fault/check"
	"catenary/integration/fault/schedule"
	"catenary/internal/topology"
	"catenary/rollout"
)

const (
	// recoveryBound is when a recovery counts as failed.
	recoveryBound = 60 * time.Second
	// quiet is how long everything is left alone between two kills, so that nothing of the one is measured with the other.
	quiet = 2 * time.Second
	// quietCluster is how long several servers take to have leaders for all streams again, and all of them in step.
	quietCluster = 9 * time.Second
)

// victims are all processes of a chain.
func victims(servers int) []string {
	return slices.Concat(schedule.Servers(servers), schedule.Writers(), []string{schedule.Projector}, schedule.Engines(), schedule.Agents())
}

// recover kills one process at a time, in turn, and measures how long it takes until its work goes on.
func (r *runner) recover(ctx context.Context, o options) error {
	s := shape(max(o.servers, 1), 0, o.span, false)
	t := newTally(0, s)
	dir, err := os.MkdirTemp(r.dir, "recovery-")
	if err != nil {
		return errors.Wrap(err, "make a directory")
	}
	rig, err := newRig(ctx, r.binaries, dir, s, "")
	if err != nil {
		return err
	}
	all := o.victims()
	if len(all) == 0 {
		all = victims(s.Servers)
	}
	err = r.killInTurn(ctx, rig, all, o.recovery, t)
	err = errors.CombineErrors(err, rig.close())
	if err == nil {
		err = t.append(r.report)
	}
	r.total.add(t)
	return errors.CombineErrors(err, r.total.table(r.out))
}

// killInTurn kills so many of a chain that is at work, one after another when all goes on again.
func (r *runner) killInTurn(ctx context.Context, rig *rig, victims []string, kills int, t *tally) error {
	nc, err := rig.senders()
	if err != nil {
		return err
	}
	defer nc.Close()
	operator, err := rig.asOperator()
	if err != nil {
		return err
	}
	defer operator.Close()
	c := newCrowd(nc)
	if err := c.prepare(ctx); err != nil {
		return err
	}
	sending, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { _, _ = c.rollouts(sending) }) // they only keep the engine at work
	for n := range kills {
		if rig.shape.Servers > 1 {
			pause(ctx, quietCluster)
		} else {
			pause(ctx, quiet)
		}
		victim, name, err := rig.struck(ctx, victims[n%len(victims)])
		if err != nil {
			return err
		}
		killed := time.Now()
		if p := rig.processes[victim]; p == nil || !p.kill() {
			return errors.Newf("%s is not there to be killed", victim)
		}
		if err := rig.await(ctx, "recovery from the end of "+victim, recoveryBound, c.goesOn(ctx, rig, operator, victim, n)); err != nil {
			return err
		}
		took := time.Since(killed)
		t.took("killed: "+name, took)
		if rig.shape.Servers == 1 || !strings.Contains(name, "the event stream") {
			t.took("killed: any one process", took)
		}
		t.add(countKills, 1)
		r.sayf("%s: %s", name, took.Round(time.Millisecond))
	}
	return ctx.Err()
}

// struck gives the process to kill for one that is named, and what it is called in the report. Of several servers the one that leads the event
// stream is what matters, and who it is changes with every kill: the first stands for it.
func (r *rig) struck(ctx context.Context, named string) (victim, name string, err error) {
	if r.shape.Servers == 1 || !strings.HasPrefix(named, schedule.Server) {
		return named, named, nil
	}
	leader, err := r.leader(ctx)
	switch {
	case err != nil:
		return "", "", err
	case named == schedule.Servers(r.shape.Servers)[0], named == leader:
		return leader, "the leader of the event stream", nil
	}
	return named, "a server that does not lead the event stream", nil
}

// goesOn gives a question: whether the work of a process goes on, by what somebody gets who asks for it from now on.
func (c *crowd) goesOn(ctx context.Context, rig *rig, operator *nats.Conn, victim string, n int) func() bool {
	bounded := func(ask func(context.Context) bool) func() bool {
		return func() bool {
			ctx, cancel := context.WithTimeout(ctx, probePatience)
			defer cancel()
			return ask(ctx)
		}
	}
	accepted := func(ctx context.Context) bool {
		r, err := c.note(commands.RegisterNode{Node: fmt.Sprintf("probe-%d-%d", n, c.since()), ManagedBy: events.ManagedByExternal}, nil)
		return err == nil && c.try(ctx, r) == check.Done
	}
	switch {
	case victim == schedule.Projector:
		return bounded(func(ctx context.Context) bool {
			status, err := audit.NewClient(operator, nil).Projections(ctx)
			if err != nil || len(status.Views) == 0 {
				return false
			}
			for _, v := range status.Views {
				if v.Behind > 0 {
					return false
				}
			}
			return true
		})
	case slices.Contains(schedule.Engines(), victim):
		return bounded(func(ctx context.Context) bool {
			_, err := operator.RequestWithContext(ctx, topology.QuerySubject(rollout.QuestionBlocked), []byte(`{"rollout":"any"}`))
			return err == nil
		})
	case slices.Contains(schedule.Agents(), victim):
		module, version := agentModules[0], fmt.Sprintf("recovery-%d", n)
		told := commands.Assign{Node: agentNodes()[slices.Index(schedule.Agents(), victim)], Module: module, Reference: events.Reference{Package: &events.Package{Name: module, Version: version}}}
		if err := c.do(ctx, told); err != nil {
			return func() bool { return false }
		}
		return func() bool {
			found, err := textOf(filepath.Join(rig.dir, victim, "apps", module+".runs"))
			return err == nil && found == version
		}
	}
	return bounded(accepted)
}

// probePatience bounds one question: short, since many follow.
const probePatience = 250 * time.Millisecond
