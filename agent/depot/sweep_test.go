package depot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/agent/artifacts"
	"catenary/chain"
	"catenary/events"
)

// day is a moment, in days.
func day(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

func TestSweep(t *testing.T) {
	t.Parallel()
	const window = 30 * 24 * time.Hour
	now := day(100)
	a, b := events.Reference{Artifact: "sha256:a"}, events.Reference{Artifact: "sha256:b"}
	step := func(before, after events.Reference) chain.Step {
		return chain.Step{Before: &events.Version{Reference: before}, After: &events.Version{Reference: after}}
	}
	for _, c := range []struct {
		name  string
		facts Facts
		used  int
		keep  bool
		why   string
		until int
	}{
		{name: "nothing names it", why: "nothing names it, and the window is over"},
		{name: "just published", used: 71, keep: true, why: "it was published", until: 101},
		{name: "published as long ago as the window", used: 70, why: "nothing names it, and the window is over"},
		{name: "it stands", facts: Facts{Told: []Told{{Node: "n1", Module: "web", Reference: a}}}, keep: true, why: "node n1 is told to run it as web"},
		{name: "another stands", facts: Facts{Told: []Told{{Node: "n1", Module: "web", Reference: b}}}, why: "nothing names it, and the window is over"},
		{name: "it stood until lately", facts: Facts{Told: []Told{{Node: "n1", Module: "web", Reference: a, Until: day(90)}}}, keep: true, why: "node n1 was told to run it as web", until: 120},
		{name: "it stood long ago", facts: Facts{Told: []Told{{Node: "n1", Module: "web", Reference: a, Until: day(70)}}}, why: "nothing names it, and the window is over"},
		{
			name: "it stands as a package", keep: true, why: "node n1 is told to run it as web",
			facts: Facts{
				Told:  []Told{{Node: "n1", Module: "web", Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1.20"}}}},
				Named: map[events.Package]string{{Name: "web", Version: "1.20"}: "sha256:a"},
			},
		},
		{
			name: "a plan names it", keep: true, why: "rollout r1 is planned",
			facts: Facts{Rollouts: []Carried{{Rollout: chain.Rollout{ID: "r1", State: chain.RolloutPlanned, Builds: []events.Target{{Module: "web", Version: events.Version{Reference: a}}}}}}},
		},
		{
			name: "a rollout that runs came from it", keep: true, why: "rollout r1 is paused",
			facts: Facts{Rollouts: []Carried{{Rollout: chain.Rollout{ID: "r1", State: chain.RolloutPaused}, Steps: []chain.Step{step(a, b)}}}},
		},
		{
			name: "a rollout could be taken back to it", keep: true, why: "rollout r1 can be taken back to it", until: 110,
			facts: Facts{Rollouts: []Carried{{Rollout: chain.Rollout{ID: "r1", State: chain.RolloutFinished, Times: chain.Times{Ended: day(80)}}, Steps: []chain.Step{step(a, b)}}}},
		},
		{
			name: "a rollout went to it, and was left again", why: "nothing names it, and the window is over",
			facts: Facts{Rollouts: []Carried{{Rollout: chain.Rollout{ID: "r1", State: chain.RolloutFailed, Times: chain.Times{Ended: day(80)}}, Steps: []chain.Step{step(b, a)}}}},
		},
		{
			name: "a rollout that was taken back", why: "nothing names it, and the window is over",
			facts: Facts{Rollouts: []Carried{{Rollout: chain.Rollout{ID: "r1", State: chain.RolloutAborted, RevertedBy: "r2", Times: chain.Times{Ended: day(80)}}, Steps: []chain.Step{step(a, b)}}}},
		},
		{
			name: "the last of several", used: 75, keep: true, why: "node n2 was told to run it as web", until: 125,
			facts: Facts{Told: []Told{{Node: "n1", Module: "web", Reference: a, Until: day(90)}, {Node: "n2", Module: "web", Reference: a, Until: day(95)}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := Sweep([]Stored{{Digest: "sha256:a", Used: day(c.used)}}, c.facts, now, window)
			want := Verdict{Stored: Stored{Digest: "sha256:a", Used: day(c.used)}, Keep: c.keep, Why: c.why}
			if c.until > 0 {
				want.Until = day(c.until)
			}
			found[0].More = 0
			if diff := cmp.Diff([]Verdict{want}, found); diff != "" {
				t.Errorf("verdict (-want +found):\n%s", diff)
			}
		})
	}
}

// TestSweepKeepsMore: whatever is known besides, nothing that is kept is removed; and nothing that is told to a node ever is.
func TestSweepKeepsMore(t *testing.T) {
	t.Parallel()
	digest := rapid.Custom(func(t *rapid.T) events.Reference {
		return events.Reference{Artifact: "sha256:" + string(rapid.RuneFrom([]rune("abcd")).Draw(t, "digest"))}
	})
	told := rapid.Custom(func(t *rapid.T) Told {
		f := Told{Node: "n", Module: "m", Reference: digest.Draw(t, "reference")}
		if rapid.Bool().Draw(t, "ended") {
			f.Until = day(rapid.IntRange(0, 100).Draw(t, "until"))
		}
		return f
	})
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.IntRange(1, 60).Draw(t, "window")) * 24 * time.Hour
		var stored []Stored
		for _, d := range "abcd" {
			stored = append(stored, Stored{Digest: fmt.Sprintf("sha256:%c", d), Used: day(rapid.IntRange(0, 100).Draw(t, "used"))})
		}
		f := Facts{Told: rapid.SliceOf(told).Draw(t, "told")}
		more := f
		more.Told = append(rapid.SliceOf(told).Draw(t, "more"), f.Told...)
		before, after := Sweep(stored, f, day(100), window), Sweep(stored, more, day(100), window)
		for i := range before {
			if before[i].Keep && !after[i].Keep {
				t.Errorf("%+v is removed, though more names it", after[i])
			}
			for _, told := range more.Told {
				if told.Artifact == after[i].Digest && told.Until.IsZero() && !after[i].Keep {
					t.Errorf("%+v is removed, and stands", after[i])
				}
			}
		}
	})
}

// TestPrune: what is not kept goes, with all of its pieces, and can be published again. Uploads that rest go too.
func TestPrune(t *testing.T) {
	t.Parallel()
	d := start(t, 64<<20)
	const kept, free, late, rests = content(ChunkBytes + 1), content(ChunkBytes + 2), content(ChunkBytes + 3), content(3 * ChunkBytes)
	d.publish(t, kept)
	d.publish(t, free)
	d.facts = Facts{Told: []Told{{Node: "n1", Module: "web", Reference: events.Reference{Artifact: kept.digest()}}}}
	d.now = d.now.Add(DefaultWindow + time.Second)
	d.publish(t, late)
	if _, err := d.Publish(bounded(t), cutAfter{rests, ChunkBytes}, rests.digest(), int64(rests), "f", nil); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	if left := d.subjects(t, chunkSubject(">")); len(left) != 4 {
		t.Fatalf("the pieces are %v", left)
	}
	judged := map[string]bool{}
	for v, err := range d.Judge(bounded(t), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		judged[v.Digest] = v.Keep
	}
	if diff := cmp.Diff(map[string]bool{kept.digest(): true, free.digest(): false, late.digest(): true}, judged); diff != "" {
		t.Errorf("judged (-want +found):\n%s", diff)
	}
	// The server's own clock says since when an upload rests.
	d.now = time.Now().Add(UploadAge + time.Hour)
	prune := func() []string {
		var gone []string
		for p, err := range d.Prune(bounded(t), 100*365*24*time.Hour) {
			if err != nil {
				t.Fatal(err)
			}
			gone = append(gone, p.Upload.Name)
		}
		return gone
	}
	if gone := prune(); len(gone) != 1 || !strings.HasPrefix(gone[0], rests.digest()[7:]) {
		t.Errorf("gone are the uploads %v, want that of %s", gone, rests.digest())
	}
	d.now = time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC).Add(DefaultWindow)
	var gone []string
	for p, err := range d.Prune(bounded(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		gone = append(gone, p.Digest)
	}
	if diff := cmp.Diff([]string{free.digest()}, gone); diff != "" {
		t.Errorf("gone (-want +found):\n%s", diff)
	}
	if left := d.subjects(t, chunkSubject(">")); len(left) != 2 {
		t.Errorf("the pieces are %v", left)
	}
	if _, err := fetch(t, d, free.digest()); !errors.Is(err, artifacts.ErrNotFound) || !strings.Contains(err.Error(), "removed at") {
		t.Errorf("got error %v", err)
	}
	for _, c := range []content{free, rests} {
		if done := d.publish(t, c); done.Again {
			t.Errorf("published again it is %+v", done)
		}
		if _, err := fetch(t, d, c.digest()); err != nil {
			t.Error(err)
		}
	}
}

// TestPublishedAgainIsKept: one that is published again after it was judged stays.
func TestPublishedAgainIsKept(t *testing.T) {
	t.Parallel()
	d := start(t, 64<<20)
	const c = content(10)
	judged := d.publish(t, c).Stored
	d.now = d.now.Add(time.Hour)
	d.publish(t, c)
	if err := d.store.Remove(bounded(t), judged); !errors.Is(err, errMoved) {
		t.Errorf("got error %v", err)
	}
	if _, err := fetch(t, d, c.digest()); err != nil {
		t.Error(err)
	}
}
