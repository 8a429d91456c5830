package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/integration/fault/check"
	"catenary/integration/fault/schedule"
	"catenary/internal/failpoint"
	"catenary/internal/topology"
)

// runner does runs.
type runner struct {
	binaries, dir string
	report        string
	out           io.Writer
	keep          bool
	faults        int
	only          string
	total         *total
}

// shape is what a run of so many servers has.
func shape(servers, faults int, span time.Duration, disk bool) schedule.Shape {
	return schedule.Shape{Servers: servers, Span: span, Faults: faults, Disk: disk && servers == 1, Views: []string{topology.BucketAssignments, topology.BucketNodes, topology.BucketRollouts}}
}

func (r *runner) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format+"\n", args...) // the exit code says what matters
}

// seed does the run of a seed, and gives what it found. A run that can't be done is no finding.
func (r *runner) seed(ctx context.Context, plan schedule.Schedule, planted failpoint.Bug) ([]check.Violation, error) {
	seed, shape := plan.Seed, plan.Shape
	dir, err := os.MkdirTemp(r.dir, fmt.Sprintf("seed-%d-", seed))
	if err != nil {
		return nil, errors.Wrap(err, "make a directory")
	}
	began := time.Now()
	t := newTally(seed, shape)
	t.Planted = string(planted)
	violations, err := r.play(ctx, dir, plan, planted, t)
	if err != nil {
		return nil, errors.Wrapf(err, "seed %d, in %s", seed, dir)
	}
	r.sayf("seed %d: %d commands, %d events, %d faults, %d points struck, %d found, %s", seed, t.Commands, t.Events, len(plan.Faults), t.Counts["points struck"], len(violations), time.Since(began).Round(100*time.Millisecond))
	if len(violations) > 0 && planted == "" {
		r.sayf("%s", plan)
		for _, v := range violations {
			r.sayf("  %s", v)
		}
		r.sayf("  kept in %s; again: go run ./integration/fault -seed %d -servers %d -faults %d -span %s -disk=%t -only %q", dir, seed, shape.Servers, r.faults, shape.Span, shape.Disk, r.only)
	} else if !r.keep {
		err = os.RemoveAll(dir)
	}
	r.total.add(t)
	return violations, errors.CombineErrors(err, t.append(r.report))
}

// play does a run in a directory.
func (r *runner) play(ctx context.Context, dir string, plan schedule.Schedule, planted failpoint.Bug, t *tally) (violations []check.Violation, err error) {
	if err := os.WriteFile(filepath.Join(dir, "schedule"), []byte(plan.String()), 0o600); err != nil {
		return nil, errors.Wrap(err, "keep the schedule")
	}
	rig, err := newRig(ctx, r.binaries, dir, plan.Shape, planted)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.CombineErrors(err, rig.close()) }()
	nc, err := rig.senders()
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	crowd := newCrowd(nc)
	if err := crowd.prepare(ctx); err != nil {
		return nil, err
	}
	if err := rig.keepYesterday(); err != nil {
		return nil, err
	}
	s := &striker{rig: rig, crowd: crowd, tally: t, Rand: rand.New(rand.NewPCG(plan.Seed, 1<<32)), harmed: map[string]bool{}}
	if err := s.act(ctx, plan); err != nil {
		return nil, err
	}
	s.calm()
	late, err := s.settle(ctx)
	if err != nil {
		return nil, err
	}
	ev, err := s.gather(ctx)
	if err != nil && (planted == "" && len(late) == 0) {
		return nil, err
	}
	ev.Problems = append(append(ev.Problems, s.problems...), late...)
	if planted == "" && len(late) == 0 {
		// The product's own look at itself has to agree.
		if said, code := rig.tool(ctx, "verify"); code != 0 {
			ev.Problems = append(ev.Problems, check.Violation{Invariant: "I4", Text: fmt.Sprintf("catenary verify ends with %d: %s", code, said)})
		}
	}
	violations = check.All(ev)
	if len(violations) > 0 {
		if err := keepHistories(filepath.Join(dir, "histories.json"), ev); err != nil {
			return nil, err
		}
	}
	t.conclude(rig, ev, violations)
	return violations, ctx.Err()
}

// keepHistories keeps what senders were told, one command a line.
func keepHistories(path string, ev check.Evidence) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for _, c := range ev.Commands {
		if err := lines.Encode(c); err != nil {
			return errors.Wrap(err, "keep the histories")
		}
	}
	return errors.Wrap(os.WriteFile(path, text.Bytes(), 0o600), "keep the histories")
}

// act lets senders send while faults happen.
func (s *striker) act(ctx context.Context, plan schedule.Schedule) error {
	sending, stop := context.WithTimeout(ctx, plan.Shape.Span+time.Second)
	defer stop()
	var all sync.WaitGroup
	var sent, planned error
	all.Go(func() { sent = s.crowd.run(sending, plan.Seed) })
	all.Go(func() {
		n, err := s.crowd.rollouts(sending)
		planned = err
		s.tally.add("rollouts", n)
	})
	err := s.strike(ctx, plan.Faults)
	all.Wait()
	return errors.CombineErrors(err, errors.CombineErrors(sent, planned))
}
