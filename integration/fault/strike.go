package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/audit"
	"catenary/es/dispatch"
	"catenary/es/project"
	"catenary/integration/fault/check"
	"catenary/integration/fault/schedule"
	"catenary/internal/failpoint"
	"catenary/internal/topology"
)

// striker does what a schedule says.
type striker struct {
	rig   *rig
	crowd *crowd
	tally *tally
	*rand.Rand

	running sync.WaitGroup
	mu      sync.Mutex
	storms  int
	backups int
	// harmed are the views whose buckets were harmed: to build one of these anew is what the guides say.
	harmed map[string]bool
	// problems are what was seen to be wrong while faults happened.
	problems []check.Violation
	failure  error
}

// strike does all faults at their times, and returns when the last is over. What each needs is undone by the one that did it.
func (s *striker) strike(ctx context.Context, faults []schedule.Fault) error {
	began := time.Now()
	for _, f := range faults {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(f.At))):
		}
		if f.Alone() {
			s.do(ctx, f) // others wait for it
			continue
		}
		s.running.Go(func() { s.do(ctx, f) })
	}
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

func (s *striker) do(ctx context.Context, f schedule.Fault) {
	done, err := s.one(ctx, f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		s.failure = errors.CombineErrors(s.failure, errors.Wrapf(err, "%s", f))
	}
	if done {
		s.tally.fault(f)
	}
}

// one does a fault and says whether there was something to strike.
func (s *striker) one(ctx context.Context, f schedule.Fault) (bool, error) {
	r := s.rig
	p := r.processes[f.Target]
	switch f.Kind {
	case schedule.Kill:
		return p.kill(), nil
	case schedule.Stop:
		done := p.signal(syscall.SIGSTOP)
		pause(ctx, f.For)
		p.signal(syscall.SIGCONT)
		return done, nil
	case schedule.Point:
		return true, s.point(ctx, f)
	case schedule.Cut, schedule.Mute, schedule.Deaf, schedule.Slow, schedule.Lost:
		s.onLine(ctx, f)
		return true, nil
	case schedule.Clock:
		if err := os.WriteFile(r.clockOf(f.Target), []byte(f.Off.String()), 0o600); err != nil {
			return false, err
		}
		pause(ctx, f.For)
		return true, os.RemoveAll(r.clockOf(f.Target)) // another fault of the clock may be over already
	case schedule.Storm:
		return true, s.storm(ctx)
	case schedule.Rebuild:
		return true, s.rebuild(ctx, f.View)
	case schedule.Leader:
		return s.killLeader(ctx)
	case schedule.Apart:
		s.apart(ctx, f)
		return true, nil
	case schedule.Roll:
		return true, s.roll(ctx)
	case schedule.Full:
		return r.mounted, s.fill(ctx, f)
	case schedule.ReadOnly:
		return r.mounted, s.readOnly(ctx, f)
	case schedule.Poison:
		return s.poison(), nil
	case schedule.Damage:
		return s.damage(ctx, f)
	}
	return false, errors.AssertionFailedf("no such fault")
}

// storm lets many send at once. Of several servers the leader dies while the answers are on their way (case B01).
func (s *striker) storm(ctx context.Context) error {
	s.mu.Lock()
	s.storms++
	n := s.storms
	s.mu.Unlock()
	if s.rig.shape.Servers == 1 {
		return s.crowd.storm(ctx, n)
	}
	var killed sync.WaitGroup
	var failure error
	killed.Go(func() {
		if done, err := s.killLeader(ctx); done {
			s.tally.add("storm with the leader killed", 1)
		} else {
			failure = err
		}
	})
	err := s.crowd.storm(ctx, n)
	killed.Wait()
	return errors.CombineErrors(err, failure)
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// point starts a process that is to fail. Of those of which one works at a time, it is made the one that does.
func (s *striker) point(ctx context.Context, f schedule.Fault) error {
	p := s.rig.processes[f.Target]
	switch f.Target {
	case schedule.Writers()[0]:
		s.alone(ctx, f, schedule.Writers()[1], wordWriter)
	case schedule.Engines()[0]:
		s.alone(ctx, f, schedule.Engines()[1], wordWalks)
	default:
		p.restart(f.Orders)
	}
	if f.View != "" {
		if err := s.rebuild(ctx, f.View); err != nil {
			return err
		}
	}
	pause(ctx, f.For)
	p.signal(syscall.SIGCONT) // one that was stopped goes on
	return nil
}

// alone starts a process with orders while its twin is down, and its twin when it works.
func (s *striker) alone(ctx context.Context, f schedule.Fault, twin, word string) {
	p, other := s.rig.processes[f.Target], s.rig.processes[twin]
	other.down(syscall.SIGKILL)
	began := time.Now()
	p.restart(f.Orders)
	works := func() bool { _, ok := p.saidSince(word, began); return ok }
	_ = s.rig.await(ctx, f.Target, alonePatience, works) // one that was struck before it works is what was asked for
	other.start(nil)
}

// alonePatience is how long a process may take until it works alone.
const alonePatience = 3 * time.Second

func (s *striker) onLine(ctx context.Context, f schedule.Fault) {
	for _, l := range s.rig.lines[f.Target] {
		l.set(func(st *lineState) {
			switch f.Kind {
			case schedule.Cut:
				st.cut = true
			case schedule.Mute:
				st.mute = true
			case schedule.Deaf:
				st.deaf = true
			case schedule.Slow:
				st.slow = slowness
			case schedule.Lost:
				st.lose = true
			}
		})
	}
	if f.Kind == schedule.Lost {
		return // it is over with the next command
	}
	pause(ctx, f.For)
	for _, l := range s.rig.lines[f.Target] {
		l.heal()
	}
}

// slowness is how long everything takes on a slow line.
const slowness = 40 * time.Millisecond

// rebuild asks for a view's bucket to be built anew. Whether it comes to its end is not waited for.
func (s *striker) rebuild(ctx context.Context, view string) error {
	nc, err := s.rig.asOperator()
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	_, err = audit.NewClient(nc, nil).Rebuild(ctx, audit.RebuildQuestion{View: view, RebuildOptions: project.RebuildOptions{Anew: true}}, nil)
	if err != nil {
		s.tally.add("rebuilds that were broken off", 1)
	}
	return nil
}

// killLeader kills the server that leads the event stream.
func (s *striker) killLeader(ctx context.Context) (bool, error) {
	name, err := s.rig.leader(ctx)
	if err != nil {
		return false, nil // nobody leads at the moment
	}
	return s.rig.processes[name].kill(), nil
}

// leader names the server that leads the event stream.
func (r *rig) leader(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	nc, err := r.asLedger(ctx)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	js, err := jetstream.New(nc.Conn)
	if err != nil {
		return "", err
	}
	stream, err := js.Stream(ctx, topology.EventStream)
	if err != nil {
		return "", err
	}
	c := stream.CachedInfo().Cluster
	if c == nil || c.Leader == "" {
		return "", errors.New("nobody leads")
	}
	for _, server := range r.servers {
		if fmt.Sprintf("catenary-%d", server.n) == c.Leader {
			return server.name, nil
		}
	}
	return "", errors.Newf("%s leads", c.Leader)
}

// apart cuts a server off from the others, and from everybody else.
func (s *striker) apart(ctx context.Context, f schedule.Fault) {
	n := -1
	for _, server := range s.rig.servers {
		if server.name == f.Target {
			n = server.n
		}
	}
	var cut []*line
	for pair, l := range s.rig.routes {
		if pair[0] == n || pair[1] == n {
			cut = append(cut, l)
		}
	}
	for _, list := range s.rig.lines {
		cut = append(cut, list[n])
	}
	for _, l := range cut {
		l.set(func(st *lineState) { st.cut = true })
	}
	pause(ctx, f.For)
	for _, l := range cut {
		l.heal()
	}
}

// roll stops and starts one server after another, as for an update.
func (s *striker) roll(ctx context.Context) error {
	for _, server := range s.rig.servers {
		server.down(syscall.SIGTERM)
		if err := s.rig.startServer(ctx, server); err != nil {
			return err
		}
		pause(ctx, time.Second)
	}
	return nil
}

// startServer starts a server that is down, and waits until it is ready.
func (r *rig) startServer(ctx context.Context, server *server) error {
	began := time.Now()
	server.start(nil)
	return r.await(ctx, server.name+" after a start", readyPatience, func() bool { _, ok := server.saidSince(wordServer, began); return ok })
}

// fill fills the disk of the server, and makes room again. A server whose disk was full has to be started again (case A07).
func (s *striker) fill(ctx context.Context, f schedule.Fault) error {
	if !s.rig.mounted {
		return nil
	}
	path := filepath.Join(s.rig.dir, "data", "ballast")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.CombineErrors(err, file.Close())
	}
	pause(ctx, f.For)
	if err := errors.CombineErrors(file.Close(), os.Remove(path)); err != nil {
		return err
	}
	for _, server := range s.rig.servers {
		server.kill()
	}
	return nil
}

// readOnly ends the server, and starts it over a disk that can't be written. It can't come up until that is over.
func (s *striker) readOnly(ctx context.Context, f schedule.Fault) error {
	if !s.rig.mounted {
		return nil
	}
	var failure error
	for _, flag := range []uintptr{syscall.MS_RDONLY, 0} {
		for _, server := range s.rig.servers {
			server.down(syscall.SIGKILL)
		}
		failure = errors.CombineErrors(failure, s.rig.remount(flag))
		for _, server := range s.rig.servers {
			server.start(nil)
		}
		if flag != 0 {
			pause(ctx, f.For)
		}
	}
	return failure
}

// poison sends what no program of ours would. It is refused, parked or passed over, and nobody else suffers. One of it takes the id of a
// command that was sent.
func (s *striker) poison() (sent bool) {
	bodies := [][]byte{nil, []byte("{"), []byte(`{"node":7,"module":[]}`), []byte(strings.Repeat("[", 100_000)), bytes.Repeat([]byte{0xff}, 500_000)}
	for _, prefix := range []string{topology.CommandPrefix, topology.InboxPrefix} {
		for _, subject := range []string{"assignment.assign", "assignment.observe", "nobody.knows", "lease.take", "node.register"} {
			m := nats.NewMsg(prefix + "." + subject)
			m.Data = bodies[s.IntN(len(bodies))]
			if s.IntN(2) == 0 {
				m.Header.Set(dispatch.HeaderCommand, s.crowd.anyID(s.Rand))
			}
			// While the connection is cut nothing of it goes out.
			sent = s.crowd.nc.PublishMsg(m) == nil || sent
		}
	}
	return sent
}

// seen notes that something was wrong.
func (s *striker) seen(invariant, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, check.Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// calm ends all faults: everything goes on, and nothing is left that would strike later.
func (s *striker) calm() {
	r := s.rig
	for _, list := range r.lines {
		for _, l := range list {
			l.heal()
		}
	}
	for _, l := range r.routes {
		l.heal()
	}
	for name, p := range r.processes {
		p.signal(syscall.SIGCONT)
		if _, err := os.Stat(r.clockOf(name)); err == nil {
			_ = os.RemoveAll(r.clockOf(name)) // a clock that stays wrong is seen by the checkers
		}
		p.start(nil)
	}
	var orders failpoint.Orders
	for _, name := range append(schedule.Writers(), schedule.Projector, schedule.Engines()[0], schedule.Agents()[0], schedule.Agents()[1]) {
		// They are started once more, without orders.
		r.processes[name].restart(orders)
	}
}
