package aggregates

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/actor"
	"catenary/aggregates/assignment"
	"catenary/aggregates/build"
	"catenary/aggregates/commit"
	"catenary/aggregates/freeze"
	"catenary/aggregates/journal"
	"catenary/aggregates/lease"
	"catenary/aggregates/merge"
	"catenary/aggregates/module"
	"catenary/aggregates/node"
	"catenary/aggregates/projection"
	"catenary/aggregates/publication"
	"catenary/aggregates/rollout"
	"catenary/aggregates/snapshot"
	"catenary/aggregates/strategy"
	"catenary/aggregates/track"
	"catenary/aggregates/writer"
	"catenary/es"
)

// snapshotForm grows with every change of what [World.Snapshot] writes.
const snapshotForm = 5

// Form names the rules and the form of this program's snapshots. One of another form can't be restored.
func (w *World) Form() string { return fmt.Sprintf("rules %d, form %d", RulesVersion, snapshotForm) }

// Snapshot writes the fold: every instance, and of the indexes what can't be told from them. Equal folds give equal bytes.
// What was applied and may be undone yet is part of it; what was noted is not.
func (w *World) Snapshot(out io.Writer) error {
	s := snapshot.NewWriter(out)
	writeInstances(s, w.modules, module.State.Snapshot)
	writeInstances(s, w.nodes, node.State.Snapshot)
	writeInstances(s, w.commits, commit.State.Snapshot)
	writeInstances(s, w.builds, build.State.Snapshot)
	publications := writeInstances(s, w.publications, publication.State.Snapshot)
	writeInstances(s, w.assignments, new(assignment.Snapshots).Snapshot)
	writeInstances(s, w.freezes, freeze.State.Snapshot)
	writeInstances(s, w.leases, lease.State.Snapshot)
	writeInstances(s, w.projections, projection.State.Snapshot)
	writeInstances(s, w.merges, merge.State.Snapshot)
	writeInstances(s, w.tracks, track.State.Snapshot)
	writeInstances(s, w.strategies, strategy.State.Snapshot)
	writeInstances(s, w.rollouts, rollout.State.Snapshot)
	writeInstances(s, w.writers, writer.State.Snapshot)
	writeInstances(s, w.actors, actor.State.Snapshot)
	w.writeSteps(s)
	writeTimeline(s, w.published, publications)
	writeReusable(s, w.reusable)
	return s.Close()
}

// sorted gives keys with their values in the order of the keys, and all keys.
func sorted[K cmp.Ordered, V any](all iter.Seq2[K, V], size int) []K {
	keys := make([]K, 0, size)
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// writeInstances writes a table in the order of its keys, which it gives.
func writeInstances[S any](s *snapshot.Writer, t instances[S], state func(S, *snapshot.Writer)) []string {
	keys := sorted(t.All(), t.Len())
	s.Number(uint64(len(keys)))
	s.EndRow()
	for _, key := range keys {
		in, _ := t.Get(key)
		s.Name(key)
		s.Number(in.version)
		s.Signed(in.latest)
		state(in.state, s)
		s.EndRow()
	}
	return keys
}

// writeTimeline writes which publications of a module came when; they are named by their place among all.
func writeTimeline(s *snapshot.Writer, t *journal.Timeline[string, string], publications []string) {
	lines := maps.Collect(t.All())
	s.Number(uint64(len(lines)))
	s.EndRow()
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		s.Text(name)
		s.Number(uint64(len(lines[name])))
		s.EndRow()
		for _, e := range lines[name] {
			place, _ := slices.BinarySearch(publications, e.Value)
			s.Number(uint64(place))
			s.Signed(e.At)
			s.Number(e.Sequence)
			s.EndRow()
		}
	}
}

func writeReusable(s *snapshot.Writer, t *journal.Table[string, string]) {
	keys := sorted(t.All(), t.Len())
	s.Number(uint64(len(keys)))
	s.EndRow()
	for _, key := range keys {
		id, _ := t.Get(key)
		s.Name(key)
		s.Text(id)
		s.EndRow()
	}
}

// Restore makes a new world what another was when it wrote a snapshot. It reads to the end. It gives errors marked
// [snapshot.ErrForm] for what is no snapshot of this [World.Form], and those of the reader; the world is of no use then.
func (w *World) Restore(in io.Reader) error {
	s := snapshot.NewReader(in)
	readInstances(s, w.modules, module.Restored, w.indexModule)
	readInstances(s, w.nodes, node.Restored, nil)
	readInstances(s, w.commits, commit.Restored, nil)
	readInstances(s, w.builds, build.Restored, nil)
	publications := readInstances(s, w.publications, publication.Restored, nil)
	readInstances(s, w.assignments, new(assignment.Snapshots).Restored, w.place)
	readInstances(s, w.freezes, freeze.Restored, nil)
	readInstances(s, w.leases, lease.Restored, w.indexLease)
	readInstances(s, w.projections, projection.Restored, nil)
	readInstances(s, w.merges, merge.Restored, w.indexMerge)
	readInstances(s, w.tracks, track.Restored, w.indexTrack)
	readInstances(s, w.strategies, strategy.Restored, nil)
	readInstances(s, w.rollouts, rollout.Restored, nil)
	readInstances(s, w.writers, writer.Restored, nil)
	readInstances(s, w.actors, actor.Restored, nil)
	w.readSteps(s)
	w.readTimeline(s, publications)
	s.Rows(w.reusable.Reserve, func() { w.reusable.Put(s.Name(), s.Text()) })
	return errors.Wrap(s.Close(), "restore the world")
}

// readInstances reads a table, fills the indexes that can be told from it, and gives its keys in order.
func readInstances[S any](s *snapshot.Reader, t instances[S], state func(*snapshot.Reader) S, index func(key string, s S) error) []string {
	var keys []string
	s.Rows(func(n int) {
		t.Reserve(n)
		keys = make([]string, 0, n)
	}, func() {
		key := s.Name()
		in := instance[S]{version: s.Number(), latest: s.Signed(), state: state(s)}
		t.Put(key, in)
		keys = append(keys, key)
		if index == nil {
			return
		}
		if err := index(key, in.state); err != nil {
			s.Fail(err)
		}
	})
	return keys
}

func (w *World) readTimeline(s *snapshot.Reader, publications []string) {
	s.Rows(func(int) {}, func() {
		name := w.share(s.Text())
		s.Rows(func(int) {}, func() {
			place, at, sequence := s.Number(), s.Signed(), s.Number()
			if place >= uint64(len(publications)) {
				s.Fail(errors.Newf("there is no publication %d", place))
				return
			}
			w.published.Insert(name, at, sequence, publications[place])
		})
	})
}

func (w *World) indexModule(key string, s module.State) error {
	if len(s.Requires) == 0 {
		return nil
	}
	name, err := es.UnescapeToken(key)
	if err == nil {
		w.require(name, s.Requires)
	}
	return err
}

func (w *World) indexLease(key string, s lease.State) error {
	if s.Status == lease.Held {
		w.fences.Put(s.Fence, key)
	}
	return nil
}
