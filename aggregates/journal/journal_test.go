package journal_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/aggregates/journal"
	"catenary/es"
)

// plain is what the containers hold, without any journal: the simple thing that they are compared with.
type plain struct {
	Table    map[string]int
	Index    map[string]map[int]bool
	Timeline map[string][]point
}

type point struct {
	At       int64
	Sequence uint64
}

func (p plain) clone() plain {
	c := plain{Table: maps.Clone(p.Table), Index: map[string]map[int]bool{}, Timeline: map[string][]point{}}
	for k, set := range p.Index {
		c.Index[k] = maps.Clone(set)
	}
	for k, line := range p.Timeline {
		c.Timeline[k] = slices.Clone(line)
	}
	return c
}

// TestUndoIsExact does anything in any order and demands that the containers always hold what plain maps hold that were
// copied at each mark.
func TestUndoIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := &journal.Log{}
		table := journal.NewTable[string, int](log)
		index := journal.NewIndex[string, int](log)
		timeline := journal.NewTimeline[string, point](log)
		now := plain{Table: map[string]int{}, Index: map[string]map[int]bool{}, Timeline: map[string][]point{}}
		type saved struct {
			mark  es.Mark
			state plain
		}
		var marks []saved
		var sequence uint64
		key := rapid.SampledFrom([]string{"a", "b", "c"})
		// Enough members to make a set large, and small again.
		member := rapid.IntRange(0, 40)

		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), member.Draw(t, "value")
				table.Put(k, v)
				now.Table[k] = v
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				table.Delete(k)
				delete(now.Table, k)
			},
			"add": func(t *rapid.T) {
				k := key.Draw(t, "key")
				for _, m := range rapid.SliceOfN(member, 1, 20).Draw(t, "members") {
					index.Add(k, m)
					if now.Index[k] == nil {
						now.Index[k] = map[int]bool{}
					}
					now.Index[k][m] = true
				}
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				for _, m := range rapid.SliceOfN(member, 1, 20).Draw(t, "members") {
					index.Remove(k, m)
					delete(now.Index[k], m)
				}
			},
			"insert": func(t *rapid.T) {
				k := key.Draw(t, "key")
				sequence++
				p := point{At: int64(rapid.IntRange(0, 5).Draw(t, "at")), Sequence: sequence}
				timeline.Insert(k, p.At, p.Sequence, p)
				now.Timeline[k] = append(now.Timeline[k], p)
			},
			"mark": func(*rapid.T) { marks = append(marks, saved{log.Mark(), now.clone()}) },
			"rollback": func(t *rapid.T) {
				if len(marks) == 0 {
					return
				}
				i := rapid.IntRange(0, len(marks)-1).Draw(t, "to")
				log.Rollback(marks[i].mark)
				now, marks = marks[i].state.clone(), marks[:i+1]
			},
			"release": func(t *rapid.T) {
				if len(marks) == 0 {
					return
				}
				i := rapid.IntRange(0, len(marks)-1).Draw(t, "up to")
				log.Release(marks[i].mark)
				marks = marks[i+1:]
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(now.Table, maps.Collect(table.All())); diff != "" {
					t.Fatalf("table (-want +got):\n%s", diff)
				}
				for _, k := range []string{"a", "b", "c"} {
					checkIndex(t, index, k, now.Index[k])
					checkTimeline(t, timeline, k, now.Timeline[k])
				}
				if log.Open() != (len(marks) > 0) {
					t.Fatalf("open: %v with %d marks", log.Open(), len(marks))
				}
			},
		})
	})
}

func checkIndex(t *rapid.T, index *journal.Index[string, int], key string, want map[int]bool) {
	t.Helper()
	sorted := slices.Sorted(maps.Keys(want))
	got := index.Members(key)
	if !slices.Equal(sorted, got) || index.Count(key) != len(sorted) {
		t.Fatalf("index %s: got %v (%d), want %v", key, got, index.Count(key), sorted)
	}
	for _, n := range []int{0, 1, 3, 100} {
		if first := index.First(key, n); !slices.Equal(first, sorted[:min(n, len(sorted))]) {
			t.Fatalf("index %s: the first %d are %v, want them of %v", key, n, first, sorted)
		}
	}
	for m := range 41 {
		if index.Has(key, m) != want[m] {
			t.Fatalf("index %s: has %d: %v", key, m, !want[m])
		}
	}
}

func checkTimeline(t *rapid.T, timeline *journal.Timeline[string, point], key string, want []point) {
	t.Helper()
	want = slices.Clone(want)
	slices.SortFunc(want, func(a, b point) int {
		if a.At != b.At {
			return int(b.At - a.At)
		}
		return int(b.Sequence) - int(a.Sequence)
	})
	if got := slices.Collect(timeline.Newest(key)); !slices.Equal(want, got) {
		t.Fatalf("timeline %s: got %v, want %v", key, got, want)
	}
}

func TestNewestStopsWhenAsked(t *testing.T) {
	t.Parallel()
	line := journal.NewTimeline[string, int](&journal.Log{})
	line.Insert("a", 1, 1, 10)
	line.Insert("a", 2, 2, 20)
	for v := range line.Newest("a") {
		if v != 20 {
			t.Fatalf("got %d first, want the newest", v)
		}
		break
	}
}

func TestRollbackToAClosedMarkPanics(t *testing.T) {
	t.Parallel()
	log := &journal.Log{}
	m := log.Mark()
	log.Release(m)
	log.Release(m) // closing twice is no harm
	defer func() {
		if recover() == nil {
			t.Error("changes that may be forgotten were said to be undone")
		}
	}()
	log.Rollback(m)
}

// TestCostIsThatOfTheChanges demands that going back and forgetting do not look at what a table holds. It counts
// allocations, so nothing runs beside it.
func TestCostIsThatOfTheChanges(t *testing.T) {
	log := &journal.Log{}
	table := journal.NewTable[int, int](log)
	for i := range 200_000 {
		table.Put(i, i)
	}
	rounds := func() {
		for i := range 100 {
			m := log.Mark()
			table.Put(i, -i)
			log.Rollback(m)
			log.Release(m)
		}
	}
	if allocated := testing.AllocsPerRun(5, rounds); allocated > 1000 {
		t.Errorf("100 changes and their undoing took %.0f allocations", allocated)
	}
	if v, _ := table.Get(7); v != 7 {
		t.Errorf("got %d, want 7", v)
	}
}
