package main

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/integration/fault/schedule"
	"catenary/internal/failpoint"
)

// seedsForABug is how many runs a bug may take to be found.
const seedsForABug = 4

// plantAll plants bugs one after another, and gives how many were not found.
func (r *runner) plantAll(ctx context.Context, o options) (int, error) {
	bugs := failpoint.Bugs()
	if o.planted != "all" {
		var err error
		if bugs, err = failpoint.ParsePlanted(o.planted); err != nil {
			return 0, err
		}
	}
	missed := 0
	for _, bug := range bugs {
		by, tries := map[string]int{}, 0
		for ; tries < seedsForABug && len(by) == 0; tries++ {
			plan := bringOut(bug, schedule.Of(o.from+uint64(tries)+1, shape(max(o.servers, 1), o.faults, o.span, false)))
			violations, err := r.seed(ctx, plan, bug)
			if err != nil {
				return missed, errors.Wrapf(err, "bug %s", bug)
			}
			for _, v := range violations {
				by[v.Invariant]++
			}
		}
		if len(by) == 0 {
			missed++
			r.sayf("%s: NOT FOUND in %d runs", bug, tries)
		} else {
			r.sayf("%s: found in run %d, by %v", bug, tries, by)
		}
	}
	r.sayf("%d of %d bugs were found", len(bugs)-missed, len(bugs))
	return missed, nil
}

// bringOut changes a schedule so that a bug has an occasion to do harm, where those of chance are rare.
func bringOut(bug failpoint.Bug, plan schedule.Schedule) schedule.Schedule {
	often := func(every time.Duration, faults ...schedule.Fault) {
		plan.Faults = nil
		for n := 0; ; n++ {
			f := faults[n%len(faults)]
			f.At = every * time.Duration(n+1)
			if f.At+f.For >= plan.Shape.Span {
				return
			}
			plan.Faults = append(plan.Faults, f)
		}
	}
	writers := schedule.Writers()
	switch bug {
	case failpoint.AnswerBeforeAppend:
		// An answer travels behind its append on the same connection. It is false when another writer has appended meanwhile.
		stop := schedule.Fault{Kind: schedule.Stop, Target: writers[0], For: 1300 * time.Millisecond}
		other := stop
		other.Target = writers[1]
		often(1700*time.Millisecond, stop, other)
	case failpoint.UnclearRefused:
		// The first appends of a writer may be those of engines and agents, whose histories nobody keeps.
		lost := schedule.Fault{Kind: schedule.Point, Target: writers[0], For: time.Second}
		for _, at := range []int{5, 10, 20, 40} {
			lost.Orders = append(lost.Orders, failpoint.Order{Name: failpoint.StoreAnswerLost, Action: failpoint.Error, At: at})
		}
		often(2500*time.Millisecond, lost)
	case failpoint.BatonKept:
		often(2*time.Second, schedule.Fault{Kind: schedule.Kill, Target: writers[0]}, schedule.Fault{Kind: schedule.Kill, Target: writers[1]})
	case failpoint.DedupSkipped, failpoint.ExpectedIgnored, failpoint.VersionSkipped, failpoint.BodyChanged, failpoint.ValueSkipped, failpoint.EndedDropped,
		failpoint.BeginTwice, failpoint.EndTwice, failpoint.ApplySkipped:
		plan.Faults = slices.Clone(plan.Faults)
	}
	return plan
}
