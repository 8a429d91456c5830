package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/audit"
	"catenary/integration/fault/check"
	"catenary/integration/fault/schedule"
	"catenary/internal/backup"
	"catenary/internal/topology"
)

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
	if err := r.startServer(ctx, server); err != nil {
		return false, err
	}
	last, broken, err := r.whole(ctx)
	if err == nil && !broken && last == before {
		return done, nil // nothing of it was needed
	}
	for _, w := range s.writersOver(ctx, f.For) {
		s.seen("I3", "%s: %s takes commands over a stream that ends at event %d (broken: %t) instead of %d", f, w, last, broken, before)
	}
	server.down(syscall.SIGKILL)
	if err := copyTree(saved, server.events()); err != nil {
		return false, err
	}
	s.tally.add("operator: put the event stream back", 1)
	server.start(nil)
	return done, nil
}

// writersOver starts the writers for a while, and gives those that took commands.
func (s *striker) writersOver(ctx context.Context, d time.Duration) (took []string) {
	began := time.Now()
	for _, w := range schedule.Writers() {
		s.rig.processes[w].start(nil)
	}
	pause(ctx, d)
	for _, w := range schedule.Writers() {
		if _, ok := s.rig.processes[w].saidSince(wordWriter, began); ok {
			took = append(took, w)
		}
		s.rig.processes[w].down(syscall.SIGKILL)
	}
	return took
}

// backups is how often a backup is taken until nothing was recorded after it.
const backups = 3

// loseStore loses all that the server keeps, and brings it back from a backup as the guide says. So that nothing may be missing then,
// nothing is recorded after the backup: one writer is left, and nobody reaches it.
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
	if err := errors.CombineErrors(err, r.startServer(ctx, server)); err != nil {
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
