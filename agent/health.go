package agent

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/driver"
	"catenary/agent/process"
	"catenary/events"
)

// Defaults of a check where the module says nothing.
const (
	DefaultCheckInterval  = 10 * time.Second
	DefaultCheckSuccesses = 1
	DefaultCheckFailures  = 3
	// One try has as long as until the next one, so that one that hangs counts as failed; but never less than minCheckTime, which a
	// command may need on a busy machine, nor more than maxCheckTime.
	minCheckTime = 2 * time.Second
	maxCheckTime = 10 * time.Second
)

// streak counts tries in a row that had the same end. A verdict changes only after enough of them.
type streak struct {
	verdict             Verdict
	successes, failures int // that are needed
	good, bad           int // in a row
}

func newStreak(c events.Check) streak {
	return streak{successes: cmp.Or(c.Successes, DefaultCheckSuccesses), failures: cmp.Or(c.Failures, DefaultCheckFailures)}
}

// take takes the end of a try, and says whether the verdict is another one by it.
func (s *streak) take(ok bool) bool {
	before := s.verdict
	if ok {
		s.good, s.bad = s.good+1, 0
		if s.good >= s.successes {
			s.verdict = Healthy
		}
	} else {
		s.good, s.bad = 0, s.bad+1
		if s.bad >= s.failures {
			s.verdict = Unhealthy
		}
	}
	return s.verdict != before
}

// interval is the time between two tries.
func interval(c events.Check) time.Duration {
	if d, err := time.ParseDuration(c.Interval); err == nil && d > 0 {
		return d
	}
	return DefaultCheckInterval
}

// judged is a verdict on what is applied.
type judged struct {
	module  string
	source  uint64
	verdict Verdict
	reason  string
}

// watchHealth checks until the context ends, and tells each change of the verdict.
// A command that checks runs in the directory; empty means where the agent runs.
func watchHealth(ctx context.Context, node, dir string, applied Applied, tell func(judged)) {
	i := applied.Instruction
	c := *i.Delivery.Check
	tick := time.NewTicker(interval(c))
	defer tick.Stop()
	s := newStreak(c)
	for {
		err := check(ctx, c, i.task(node, 1), dir)
		if ctx.Err() != nil {
			return
		}
		if s.take(err == nil) {
			j := judged{module: i.Module, source: i.Source, verdict: s.verdict}
			if err != nil {
				j.reason = driver.Printable(err.Error())
			}
			tell(j)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// check tries once.
func check(ctx context.Context, c events.Check, task driver.Task, dir string) error {
	within := min(max(interval(c), minCheckTime), maxCheckTime)
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.Mark(errors.Newf("no answer within %v", within), context.DeadlineExceeded))
	defer cancel()
	switch {
	case len(c.Exec) > 0:
		tail := &driver.Tail{Bytes: 1 << 10}
		err := process.Run(ctx, process.Command{Args: c.Exec, Dir: dir, Env: driver.Environment("check", task), Stdin: task.Record, Output: tail, Grace: time.Second})
		if said := tail.Text(1 << 10); err != nil && said != "" {
			err = errors.Newf("%v\n%s", err, said)
		}
		return err
	case c.HTTP != "":
		return checkHTTP(ctx, c.HTTP)
	case c.TCP != "":
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.TCP)
		if err != nil {
			return errors.Wrapf(err, "connect to %s", c.TCP)
		}
		return conn.Close()
	}
	return errors.New("the check says neither exec, http nor tcp")
}

// checkHTTP asks once. Whatever is not an error of the server or of who asks is well.
func checkHTTP(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return errors.Wrapf(err, "ask %s", url)
	}
	// A connection of its own: one that is kept says nothing of whether the next can be made.
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return errors.Wrapf(err, "ask %s", url)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	err = errors.CombineErrors(err, answer.Body.Close())
	if answer.StatusCode >= http.StatusBadRequest {
		return errors.Newf("%s answers %s", url, answer.Status)
	}
	return errors.Wrapf(err, "ask %s", url)
}
