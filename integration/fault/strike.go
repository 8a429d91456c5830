package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	"catenary/internal/backup"
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
		s.mu.Lock()
		s.storms++
		n := s.storms
		s.mu.Unlock()
		if r.shape.Servers == 1 {
			return true, s.crowd.storm(ctx, n)
		}
		// Case B01: the leader dies while the answers are on their way.
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
		return true, errors.CombineErrors(err, failure)
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
		began := time.Now()
		server.down(syscall.SIGTERM)
		server.start(nil)
		err := s.rig.await(ctx, server.name+" after a restart", readyPatience, func() bool { _, ok := server.saidSince(wordServer, began); return ok })
		if err != nil {
			return err
		}
		pause(ctx, time.Second)
	}
	return nil
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

// poison sends what no program of ours would. It is refused, parked or passed over, and nobody else suffers. One of it takes the id of a command that was sent.
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

// damage harms files of processes that are down meanwhile.
func (s *striker) damage(ctx context.Context, f schedule.Fault) (bool, error) {
	switch f.Harm {
	case schedule.HarmEvents, schedule.HarmEventsEarlier:
		return s.damageEvents(ctx, f)
	case schedule.HarmStore:
		return s.loseStore(ctx)
	case schedule.HarmServer:
		return s.damageServer(ctx, f)
	}
	r := s.rig
	p := r.processes[f.Target]
	how := syscall.SIGKILL
	if f.Harm == schedule.HarmIndex {
		how = syscall.SIGTERM // a server writes its index when it is told to end
	}
	p.down(how)
	defer p.start(nil)
	switch f.Harm {
	case schedule.HarmAudit:
		if f.How == schedule.Old {
			return true, copyTree(filepath.Join(r.yesterday, "audit"), filepath.Dir(r.auditFile()))
		}
		return harmFile(s.Rand, r.auditFile(), f.How)
	case schedule.HarmAgentForgotten:
		return true, os.RemoveAll(r.stateOf(f.Target))
	case schedule.HarmBucket, schedule.HarmCopy:
		s.mu.Lock()
		s.harmed[f.View] = true
		s.mu.Unlock()
		account := topology.AccountLedger
		if f.Harm == schedule.HarmCopy {
			account = topology.AccountOps
		}
		return s.harmBuckets(account, f)
	case schedule.HarmSnapshots:
		return harmStream(s.Rand, r.servers[0].streamDir(topology.AccountLedger, topology.ObjectsStream(topology.ObjectsSnapshots)), f.How)
	case schedule.HarmIndex:
		return harmFile(s.Rand, filepath.Join(r.servers[0].events(), "msgs", "index.db"), f.How)
	}
	return false, errors.AssertionFailedf("no such harm")
}

// damagedFor is how long a server goes on with damaged files before somebody sees to it.
const damagedFor = time.Second

// damageServer harms the event stream of one of several servers, and then does what the guide says: removes its files, so that it gets them from the
// others. Nothing may be behind before that, nor until it has them: three servers stand the loss of one, and of no second.
func (s *striker) damageServer(ctx context.Context, f schedule.Fault) (bool, error) {
	r := s.rig
	s.running.Wait()
	inStep := func() bool { return r.inStep(ctx) }
	if r.await(ctx, "the servers", witnessPatience, inStep) != nil {
		return false, nil
	}
	server := r.servers[slices.IndexFunc(r.servers, func(server *server) bool { return server.name == f.Target })]
	server.down(syscall.SIGKILL)
	done, err := true, error(nil)
	if f.How == schedule.Delete {
		err = os.RemoveAll(server.events())
	} else {
		done, err = harmStream(s.Rand, server.events(), f.How)
	}
	server.start(nil)
	pause(ctx, damagedFor)
	server.down(syscall.SIGKILL)
	err = errors.CombineErrors(err, os.RemoveAll(server.store))
	s.tally.add("operator: removed a damaged server's files", 1)
	began := time.Now()
	server.start(nil)
	if late := r.await(ctx, f.Target+" to get its files from the others", catchBound, inStep); late != nil && ctx.Err() == nil {
		s.seen("I8", "%s: %v", f, late)
	}
	s.tally.took("a server has its files from the others", time.Since(began))
	return done, err
}

// inStep says whether every stream has a leader and no server is behind.
func (r *rig) inStep(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	ledger, err := r.asLedger(ctx)
	if err != nil {
		return false
	}
	defer ledger.Close()
	js, err := jetstream.New(ledger.Conn)
	if err != nil {
		return false
	}
	list, streams := js.ListStreams(ctx), 0
	for info := range list.Info() {
		streams++
		if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != len(r.servers)-1 {
			return false
		}
		for _, replica := range info.Cluster.Replicas {
			if !replica.Current || replica.Offline || replica.Lag > 0 {
				return false
			}
		}
	}
	return list.Err() == nil && streams >= len(topology.ChainBuckets())
}

// harmBuckets harms the present generation of a view's bucket, or its copy.
func (s *striker) harmBuckets(account string, f schedule.Fault) (bool, error) {
	dirs, err := filepath.Glob(s.rig.servers[0].streamDir(account, topology.BucketStream(f.View)+"*"))
	if err != nil || len(dirs) == 0 {
		return false, err
	}
	newest := dirs[0]
	for _, d := range dirs {
		if len(d) > len(newest) || len(d) == len(newest) && strings.Compare(d, newest) > 0 {
			newest = d
		}
	}
	return harmStream(s.Rand, newest, f.How)
}

// damageEvents harms the event stream, or brings yesterday's, and demands that no writer goes on from there (cases A03 and A11). Then the stream
// is put back.
func (s *striker) damageEvents(ctx context.Context, f schedule.Fault) (bool, error) {
	s.running.Wait()
	r := s.rig
	server := r.servers[0]
	if err := s.caughtUp(ctx, witnessPatience); err != nil {
		return false, nil // without witnesses nobody could tell
	}
	for _, w := range schedule.Writers() {
		r.processes[w].down(syscall.SIGKILL)
	}
	defer func() {
		for _, w := range schedule.Writers() {
			r.processes[w].start(nil)
		}
	}()
	if err := s.caughtUp(ctx, witnessPatience); err != nil {
		return false, nil
	}
	before, _, err := r.whole(ctx)
	if err != nil {
		return false, nil // the server is away at the moment
	}
	server.down(syscall.SIGKILL)
	saved := filepath.Join(r.dir, "saved")
	if err := copyTree(server.events(), saved); err != nil {
		return false, err
	}
	done := true
	if f.Harm == schedule.HarmEventsEarlier {
		err = copyTree(filepath.Join(r.yesterday, "events"), server.events())
	} else {
		done, err = harmStream(s.Rand, server.events(), f.How)
	}
	if err != nil {
		return false, err
	}
	began := time.Now()
	server.start(nil)
	if err := r.await(ctx, "the server", readyPatience, func() bool { _, ok := server.saidSince(wordServer, began); return ok }); err != nil {
		return false, err
	}
	after, broken, err := r.whole(ctx)
	if err == nil && !broken && after == before {
		return done, nil // nothing of it was needed
	}
	for _, w := range schedule.Writers() {
		r.processes[w].start(nil)
	}
	pause(ctx, f.For)
	for _, w := range schedule.Writers() {
		if at, ok := r.processes[w].saidSince(wordWriter, began); ok {
			s.seen("I3", "%s: %s takes commands %s after the server came back with a stream that ends at event %d (broken: %t) instead of %d", f, w, at.Sub(began), after, broken, before)
		}
		r.processes[w].down(syscall.SIGKILL)
	}
	server.down(syscall.SIGKILL)
	if err := copyTree(saved, server.events()); err != nil {
		return false, err
	}
	s.tally.add("operator: put the event stream back", 1)
	server.start(nil)
	return done, nil
}

// backups is how often a backup is taken until nothing was recorded after it.
const backups = 3

// loseStore loses all that the server keeps, and brings it back from a backup as the guide says. So that nothing may be missing then, nothing is recorded after
// the backup: one writer is left, and nobody reaches it.
func (s *striker) loseStore(ctx context.Context) (bool, error) {
	s.running.Wait() // a fault that starts a writer again would let it record over nothing
	r := s.rig
	writers := schedule.Writers()
	r.processes[writers[1]].down(syscall.SIGKILL)
	defer r.processes[writers[1]].start(nil)
	for _, name := range append(append([]string{schedule.Clients}, schedule.Engines()...), schedule.Agents()...) {
		for _, l := range r.lines[name] {
			l.set(func(st *lineState) { st.cut = true })
			defer l.heal()
		}
	}
	defer r.processes[writers[0]].start(nil)
	taken := ""
	for n := range backups {
		r.processes[writers[0]].start(nil)
		if s.caughtUp(ctx, witnessPatience) != nil {
			return false, nil // something else is broken at the moment
		}
		s.backups++
		dir := filepath.Join(r.dir, "backups", fmt.Sprintf("%d-%d", s.backups, n))
		if _, code := r.tool(ctx, "backup", dir); code != 0 {
			continue
		}
		m, err := backup.Read(dir)
		if err != nil {
			return false, err
		}
		r.processes[writers[0]].down(syscall.SIGKILL)
		if last, broken, err := r.whole(ctx); err == nil && !broken && last == m.Head.Sequence {
			taken = dir
			break
		}
	}
	if taken == "" {
		return false, nil
	}
	s.tally.add("operator: took a backup", 1)
	r.processes[schedule.Projector].down(syscall.SIGKILL)
	defer r.processes[schedule.Projector].start(nil)
	server := r.servers[0]
	server.down(syscall.SIGKILL)
	err := os.RemoveAll(server.store)
	began := time.Now()
	server.start(nil)
	if err == nil {
		err = r.await(ctx, "the server", readyPatience, func() bool { _, ok := server.saidSince(wordServer, began); return ok })
	}
	if err != nil {
		return false, err
	}
	if said, code := r.command(ctx, nil, "restore", taken, "--config", r.directConfig()); code != 0 {
		s.seen("I8", "a backup of a whole record can't be restored (exit code %d): %s", code, said)
	}
	s.tally.add("operator: restored a backup", 1)
	return true, nil
}

// whole reads the event stream, and gives its last event and whether its chain is broken or it lacks events.
func (r *rig) whole(ctx context.Context) (last uint64, broken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatherPatience)
	defer cancel()
	messages, tail, err := r.stream(ctx)
	if err != nil {
		return 0, false, err
	}
	ev := check.Evidence{Messages: messages}
	return tail, len(messages) != int(tail) || len(check.Chained(ev)) > 0, nil
}

// caughtUp waits until all views have passed the end of the stream.
func (s *striker) caughtUp(ctx context.Context, patience time.Duration) error {
	nc, err := s.rig.asOperator()
	if err != nil {
		return err
	}
	defer nc.Close()
	queries := audit.NewClient(nc, nil)
	return s.rig.await(ctx, "the projector", patience, func() bool {
		bounded, cancel := context.WithTimeout(ctx, tryPatience)
		defer cancel()
		status, err := queries.Projections(bounded)
		if err != nil {
			return false
		}
		for _, v := range status.Views {
			if v.Behind > 0 {
				return false
			}
		}
		return true
	})
}

// witnessPatience is how long the projector may take before the event stream is harmed.
const witnessPatience = 5 * time.Second

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
