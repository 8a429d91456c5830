package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/events"
	"catenary/integration/fault/check"
	"catenary/integration/fault/schedule"
	"catenary/internal/topology"
	"catenary/projections"
)

const (
	// gatherPatience bounds the reading of what a run has left.
	gatherPatience = 60 * time.Second
	// copyPatience is how long a copy may take to have what its bucket has.
	copyPatience = 10 * time.Second
)

// stream reads the event stream whole.
func (r *rig) stream(ctx context.Context) ([]es.Message, uint64, error) {
	nc, err := r.asLedger(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer nc.Close()
	store, err := natsstore.Open(ctx, nc.Conn, natsstore.Config{})
	if err != nil {
		return nil, 0, err
	}
	defer store.Close()
	tail, err := store.Tail(ctx)
	if err != nil {
		return nil, 0, err
	}
	var all []es.Message
	for m, err := range store.Read(ctx, 0) {
		if err != nil {
			return nil, 0, err
		}
		all = append(all, m)
	}
	return all, tail, nil
}

// decoded gives the events of messages.
func decoded(all []es.Message) ([]es.Event, error) {
	registry := events.Registry()
	list := make([]es.Event, len(all))
	for i, m := range all {
		e, err := registry.Decode(m)
		if err != nil {
			return nil, err
		}
		list[i] = e
	}
	return list, nil
}

// gather reads all that a run has left behind, at a moment at which nothing was on its way: agents may have something to report still.
func (s *striker) gather(ctx context.Context) (check.Evidence, error) {
	ctx, cancel := context.WithTimeout(ctx, gatherPatience)
	defer cancel()
	for {
		ev, err := s.rig.look(ctx, s.crowd, func(ctx context.Context) error { return s.caughtUp(ctx, gatherPatience) })
		if err != nil || len(ev.Problems) > 0 {
			return ev, err
		}
		after, _, err := s.rig.stream(ctx)
		if err != nil || len(after) == len(ev.Messages) {
			return ev, errors.Wrap(err, "read the event stream")
		}
	}
}

// look reads the event stream, and the rest once that has come as far.
func (r *rig) look(ctx context.Context, c *crowd, caughtUp func(context.Context) error) (check.Evidence, error) {
	ev := check.Evidence{Commands: c.commands(), Views: projections.All(), Buckets: map[string][]project.Entry{}, Copies: map[string][]project.Entry{}}
	var err error
	if ev.Messages, _, err = r.stream(ctx); err != nil {
		return ev, errors.Wrap(err, "read the event stream")
	}
	if ev.Events, err = decoded(ev.Messages); err != nil {
		// What can't be read any more is for the checkers: they see the messages.
		ev.Problems = append(ev.Problems, check.Violation{Invariant: "I3", Text: err.Error()})
		return ev, nil
	}
	if err := caughtUp(ctx); err != nil {
		return ev, err
	}
	if err := r.readBuckets(ctx, &ev); err != nil {
		return ev, errors.Wrap(err, "read the buckets")
	}
	ev.Nodes, err = r.nodes(ev.Events)
	return ev, err
}

func (r *rig) readBuckets(ctx context.Context, ev *check.Evidence) error {
	ledger, err := r.asLedger(ctx)
	if err != nil {
		return err
	}
	defer ledger.Close()
	people, err := r.asOperator()
	if err != nil {
		return err
	}
	defer people.Close()
	generations, err := natskv.OpenGenerations(ctx, ledger.Conn, topology.Options{Replicas: r.shape.Servers}, nil)
	if err != nil {
		return err
	}
	for _, v := range ev.Views {
		p, err := generations.Pointer(ctx, v.Name())
		if err != nil {
			return err
		}
		if ev.Buckets[v.Name()], err = entries(ctx, ledger.Conn, p.Bucket, 0); err != nil {
			return err
		}
		values := ev.Buckets[v.Name()]
		last := uint64(0)
		if len(values) > 0 {
			last = values[len(values)-1].Revision
		}
		if ev.Copies[v.Name()], err = entries(ctx, people, p.Bucket, last); err != nil {
			return errors.Wrap(err, "copy")
		}
	}
	return nil
}

// entries reads a bucket, once it has a revision or has had the time for it.
func entries(ctx context.Context, nc *nats.Conn, name string, revision uint64) ([]project.Entry, error) {
	b, err := natskv.Open(ctx, nc, name)
	if err != nil {
		return nil, errors.Wrapf(err, "bucket %s", name)
	}
	for late := time.Now().Add(copyPatience); time.Now().Before(late); pause(ctx, 10*time.Millisecond) {
		if state, err := b.State(ctx); err == nil && state.Last >= revision {
			break
		}
	}
	var all []project.Entry
	for e, err := range b.All(ctx, 0) {
		if err != nil {
			return nil, errors.Wrapf(err, "bucket %s", name)
		}
		all = append(all, e)
	}
	return all, nil
}

// nodes looks what runs on the nodes that have agents.
func (r *rig) nodes(all []es.Event) ([]check.Runs, error) {
	type place struct{ node, module string }
	told := map[place]bool{}
	for _, e := range all {
		if d, ok := e.Data.(events.AssignmentAssigned); ok {
			told[place{d.Node, d.Module}] = true
		}
	}
	var list []check.Runs
	for i, node := range agentNodes() {
		for p := range told {
			if p.node != node {
				continue
			}
			apps := filepath.Join(r.dir, schedule.Agents()[i], "apps")
			version, err := textOf(filepath.Join(apps, p.module+".runs"))
			if err != nil {
				return nil, err
			}
			done, err := textOf(filepath.Join(apps, p.module+".done"))
			if err != nil {
				return nil, err
			}
			runs := check.Runs{Node: node, Module: p.module, Version: version}
			for _, word := range strings.Fields(done) {
				source, err := strconv.ParseUint(word, 10, 64)
				if err != nil {
					return nil, errors.Wrapf(err, "what %s has done of %s", node, p.module)
				}
				runs.Applied = append(runs.Applied, source)
			}
			list = append(list, runs)
		}
	}
	return list, nil
}

// textOf reads a file; one that is not there is empty.
func textOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), errors.Wrap(err, "look what runs")
}

// tool runs the tool of people as the operator, and gives what it says and its exit code.
func (r *rig) tool(ctx context.Context, args ...string) (string, int) {
	env, err := readEnv(filepath.Join(r.dir, "operator.env"))
	if err != nil {
		return err.Error(), -1
	}
	return r.command(ctx, []string{"NATS_URL=" + r.direct(), "NATS_USER=" + env["NATS_USER"], "NATS_PASSWORD=" + env["NATS_PASSWORD"]}, args...)
}

// command runs the tool of people, and gives what it says and its exit code.
func (r *rig) command(ctx context.Context, env []string, args ...string) (string, int) {
	cmd := exec.CommandContext(ctx, filepath.Join(r.binaries, "catenary"), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "NO_COLOR=1"}, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return fmt.Sprintf("%s%v", out, err), -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}
