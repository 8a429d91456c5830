package integration

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/chain"
)

// TestMainSet imports three months of real deliveries over the state before them, and asks what stood when.
func TestMainSet(t *testing.T) {
	t.Parallel()
	c := on(t, up(t, filepath.Join(t.TempDir(), "store"), "127.0.0.1:0", "interval"))
	args := []string{
		"import", "deliveries", govuk(t, "deliveries-2026-05-07.ndjson.gz"), "--state", govuk(t, "state-at-2026-05-01.json"), "--state-time", "2026-05-01T00:00:00Z",
	}
	first := read[imported](c, args...)
	if first.Rows != 7850 || first.Refused+first.Broken+first.Unclear+first.Repeated != 0 || len(first.Problems) > 0 {
		t.Errorf("the import: %+v", first)
	}
	want := map[pair]string{}
	for environment, apps := range readJSON[map[string]map[string]string](t, govuk(t, "state-at-2026-08-01.json")) {
		for app, version := range apps {
			want[pair{environment, app}] = version
		}
	}
	check := func(when string) {
		t.Helper()
		if diff := cmp.Diff(want, standing(c), cmp.AllowUnexported(pair{})); diff != "" || len(want) != 191 {
			t.Errorf("%s %d assignments should stand (-want +got):\n%s", when, len(want), diff)
		}
	}
	check("after the import")

	questions := readJSON[[]pastQuestion](t, govuk(t, "expected-point-in-time.json"))
	if len(questions) != 40 {
		t.Fatalf("%d questions, want 40", len(questions))
	}
	inParallel(questions, func(q pastQuestion) {
		got := read[chain.Assignment](c, "get", "assignment", q.Env, q.App, "--as-of", q.T)
		if got.Package == nil || got.Package.Version != q.Answer || !got.Stands() {
			t.Errorf("%s in %s at %s: got %+v, want %s", q.App, q.Env, q.T, got, q.Answer)
		}
	})
	askPast(c, questions)
	askWholeState(c, want)
	askReports(c, readJSON[aggregates](t, govuk(t, "aggregates.json")))

	before := c.must(0, "log", "--limit", "1", "--events", "-o", "json").out
	again := read[imported](c, args...)
	if again.Accepted+again.Registered != 0 || again.Repeated+again.Unchanged != first.Accepted+first.Unchanged {
		t.Errorf("the same import again: %+v, the first was %+v", again, first)
	}
	if after := c.must(0, "log", "--limit", "1", "--events", "-o", "json").out; after != before {
		t.Errorf("the last event was %s, and after the same import again it is %s", before, after)
	}
	check("after the same import again")
	c.must(0, "verify")
}

// inParallel does something for each of many, a few at a time: each is a process of its own.
func inParallel[T any](all []T, do func(T)) {
	next := make(chan T)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for v := range next {
				do(v)
			}
		})
	}
	for _, v := range all {
		next <- v
	}
	close(next)
	workers.Wait()
}

// TestLoadSet imports the load set (as much of it as -load-rows says), reads histories back, and then damages the record by
// hand: verify must name what was changed.
func TestLoadSet(t *testing.T) {
	t.Parallel()
	path, versions := loadSlice(t, *loadRows)
	process := up(t, filepath.Join(t.TempDir(), "store"), "127.0.0.1:0", "interval")
	c := on(t, process)
	got := read[imported](c, "import", "deliveries", path)
	if got.Refused+got.Broken+got.Unclear+len(got.Problems) != 0 {
		t.Errorf("the import: %+v", got)
	}
	// The longest histories, and all that ended.
	pairs := slices.SortedFunc(maps.Keys(versions), func(a, b pair) int { return len(versions[b]) - len(versions[a]) })
	some := slices.Clone(pairs[:10])
	for _, p := range pairs[10:] {
		if slices.Contains(versions[p], ended) {
			some = append(some, p)
		}
	}
	inParallel(some, func(p pair) {
		if diff := cmp.Diff(versions[p], versionsOf(read[[]change](c, "history", "assignment", p.environment, p.app))); diff != "" {
			t.Errorf("history of %v (-rows +got):\n%s", p, diff)
		}
	})
	stands := map[pair]string{}
	for p, v := range versions {
		if last := v[len(v)-1]; last != ended {
			stands[p] = last
		}
	}
	if diff := cmp.Diff(stands, standing(c), cmp.AllowUnexported(pair{})); diff != "" {
		t.Errorf("what stands (-rows +got):\n%s", diff)
	}
	c.must(0, "verify")
	process.down(t)
	damage(t, process.store, pairs[0])
}
