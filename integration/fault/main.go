package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/integration/fault/schedule"
	"catenary/internal/failpoint"
)

// Exit codes.
const (
	exitFound  = 1 // something is wrong with the chain
	exitFailed = 2 // a run could not be done
)

// options are the flags.
type options struct {
	seed, from              uint64
	length, span            time.Duration
	servers, faults         int
	disk, keep              bool
	planted, kill, only     string
	recovery                int
	dir, bin, report, total string
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "do the run of this `seed` alone")
	flag.Uint64Var(&o.from, "from", 0, "first `seed` (default by the clock)")
	flag.DurationVar(&o.length, "for", 3*time.Minute, "how long to begin new runs")
	flag.DurationVar(&o.span, "span", 8*time.Second, "how long faults happen in a run")
	flag.IntVar(&o.faults, "faults", 16, "how many faults happen in a run")
	flag.IntVar(&o.servers, "servers", 0, "1 or 3; 0 means three in every fifth run")
	flag.BoolVar(&o.disk, "disk", false, "in every third run of one server keep its files on a small disk, and fill it and set it read-only too, where mounting is allowed")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory of every run")
	flag.StringVar(&o.planted, "planted", "", "plant these `bugs`, or all, one after another, and demand that each is found")
	flag.IntVar(&o.recovery, "recovery", 0, "kill so many times one process, and measure how long it takes until all goes on")
	flag.StringVar(&o.only, "only", "", "draw these `kinds` of faults and harms alone, such as kill,store")
	flag.StringVar(&o.kill, "kill", "", "with -recovery: kill these `processes` alone, such as projector,engine-1")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where runs have their directories")
	flag.StringVar(&o.bin, "bin", "", "`directory` of the programs, if they are built already")
	flag.StringVar(&o.report, "report", "", "add what was done to this `file`")
	flag.StringVar(&o.total, "sum", "", "add up what was done by this `file`, and do nothing")
	flag.Parse()
	if err := o.check(flag.Args()); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "fault: %v\n", err) // the exit code says it too
		os.Exit(exitFailed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, o)
	stop()
	os.Exit(code)
}

// check says what of the flags can't be done, before programs are built for minutes.
func (o options) check(args []string) error {
	switch {
	case len(args) > 0:
		return errors.Newf("there are no arguments, and %q was given", args)
	case !slices.Contains([]int{0, 1, 3}, o.servers):
		return errors.Newf("-servers is %d: it is 1 or 3", o.servers)
	case o.span <= 0:
		return errors.Newf("-span is %v: it is longer than that", o.span)
	case o.faults < 0 || o.recovery < 0:
		return errors.Newf("-faults is %d and -recovery %d: none is below zero", o.faults, o.recovery)
	case o.only != "" && !drawable(strings.Split(o.only, ",")):
		return errors.Newf("not all of %s are kinds of faults and harms", o.only)
	}
	if o.planted != "" && o.planted != "all" {
		if _, err := failpoint.ParsePlanted(o.planted); err != nil {
			return err
		}
	}
	known := victims(max(o.servers, 1))
	for _, victim := range o.victims() {
		if !slices.Contains(known, victim) {
			return errors.Newf("-kill names %q: the processes are %s", victim, strings.Join(known, ", "))
		}
	}
	return nil
}

// victims are the processes that -kill names; none when it names none.
func (o options) victims() []string {
	if o.kill == "" {
		return nil
	}
	return strings.Split(o.kill, ",")
}

func run(ctx context.Context, o options) int {
	failed := func(err error) int {
		_, _ = fmt.Fprintf(os.Stderr, "fault: %v\n", err) // the exit code says it too
		return exitFailed
	}
	if o.total != "" {
		if err := sum(o.total, os.Stdout); err != nil {
			return failed(err)
		}
		return 0
	}
	dir, err := os.MkdirTemp(o.dir, "catenary-fault-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil && o.bin != "" {
		o.bin, err = filepath.Abs(o.bin) // processes run in directories of their own
	}
	if err != nil {
		return failed(err)
	}
	r := &runner{binaries: o.bin, dir: dir, report: o.report, out: os.Stdout, keep: o.keep, faults: o.faults, only: o.only, total: newTotal()}
	if o.bin == "" {
		r.binaries = filepath.Join(dir, "bin")
		if err := build(ctx, r.binaries); err != nil {
			return failed(err)
		}
	}
	var found int
	switch {
	case o.planted != "":
		found, err = r.plantAll(ctx, o)
	case o.recovery > 0:
		err = r.recover(ctx, o)
	default:
		found, err = r.hunt(ctx, o)
	}
	if err != nil {
		return failed(err)
	}
	if found > 0 {
		return exitFound
	}
	if !o.keep {
		if err := os.RemoveAll(dir); err != nil {
			return failed(err)
		}
	}
	return 0
}

// shapeOf is the shape of a seed's run, which follows from the flags and the seed.
func shapeOf(seed uint64, o options) schedule.Shape {
	servers, disk := o.servers, o.disk
	if o.seed == 0 {
		if servers == 0 && seed%5 == 4 {
			servers = 3
		}
		disk = disk && seed%3 == 0
	}
	form := shape(max(servers, 1), o.faults, o.span, disk)
	if o.only != "" {
		form.Only = strings.Split(o.only, ",")
	}
	return form
}

// drawable says whether names are all of kinds of faults and harms.
func drawable(names []string) bool {
	for _, servers := range []int{1, 3} {
		for _, f := range schedule.Of(1, shape(servers, 10_000, time.Hour, true)).Faults {
			names = slices.DeleteFunc(names, func(name string) bool { return name == string(f.Kind) || name == f.Harm })
		}
	}
	return len(names) == 0
}

// hunt does run after run, and gives how many have found something.
func (r *runner) hunt(ctx context.Context, o options) (int, error) {
	seed, single := o.from, o.seed != 0
	if single {
		seed = o.seed
	} else if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	r.sayf("from seed %d on: %d faults in %s", seed, o.faults, o.span)
	found, runs, undone := 0, 0, 0
	for end := time.Now().Add(o.length); time.Now().Before(end) && ctx.Err() == nil; seed++ {
		violations, err := r.seed(ctx, schedule.Of(seed, shapeOf(seed, o)), "")
		if err != nil {
			// One that can't be done says nothing of the chain. A long hunt goes on, unless none can be.
			if undone++; single || undone > runs || ctx.Err() != nil {
				return found, err
			}
			r.sayf("%v", err)
			continue
		}
		runs++
		if len(violations) > 0 {
			found++
		}
		if single {
			break
		}
	}
	r.sayf("%d runs, %d have found something\n", runs, found)
	if undone > 0 {
		return found, errors.CombineErrors(r.total.table(r.out), errors.Newf("%d runs could not be done", undone))
	}
	return found, r.total.table(r.out)
}
