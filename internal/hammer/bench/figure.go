package main

import (
	"time"

	"github.com/cockroachdb/errors"
	"golang.org/x/sys/unix"

	"catenary/internal/hammer"
)

// figure is what one run gave.
type figure struct {
	rate     float64 // per second
	p50, p99 time.Duration
	// cpu is what one took of the process's CPU time: client, server and all between them. Unlike the rate it is much the same
	// on a busy machine.
	cpu       time.Duration
	processed int
}

// stopwatch measures one run.
type stopwatch struct {
	begun time.Time
	cpu   time.Duration
}

func startWatch() (stopwatch, error) {
	cpu, err := cpuTime()
	return stopwatch{begun: time.Now(), cpu: cpu}, err
}

func (w stopwatch) elapsed() time.Duration { return time.Since(w.begun) }

// figure is that of n commands, events or whatever is counted, done since the start. Waited may be nil.
func (w stopwatch) figure(n int, waited *hammer.Latency) (figure, error) {
	took := w.elapsed()
	cpu, err := cpuTime()
	if err != nil {
		return figure{}, err
	}
	f := figure{rate: float64(n) / took.Seconds(), processed: n}
	if n > 0 {
		f.cpu = (cpu - w.cpu) / time.Duration(n)
	}
	if waited != nil {
		f.p50, f.p99 = waited.Quantile(0.5), waited.Quantile(0.99)
	}
	return f, nil
}

// cpuTime is what the process has used so far.
func cpuTime() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, errors.Wrap(err, "read the CPU time used")
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
