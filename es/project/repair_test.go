package project_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// done waits for a rebuild.
func (r *running) done(view string, o project.RebuildOptions) (project.Rebuilt, error) {
	r.t.Helper()
	k, err := r.Rebuild(view, o)
	if err != nil {
		r.t.Fatal(err)
	}
	select {
	case <-k.Done():
	case <-bounded(r.t).Done():
		r.t.Fatalf("the rebuild is %+v for ever", k.Progress())
	}
	return k.Result()
}

// rebuilt waits for a rebuild, which must succeed.
func (r *running) rebuilt(view string, o project.RebuildOptions) project.Rebuilt {
	r.t.Helper()
	result, err := r.done(view, o)
	if err != nil {
		r.t.Fatalf("%+v", err)
	}
	return result
}

// TestRepair is the repair half of case A14 and of case C16: what somebody else wrote is named and written over, in a view that
// runs and in one that has stopped, and then the bucket holds again.
func TestRepair(t *testing.T) {
	t.Parallel()
	const events = 40
	for name, c := range map[string]struct {
		spoil func(b *projecttest.Bucket)
		mends []project.Mend
		anew  string
	}{
		"nothing": {spoil: func(*projecttest.Bucket) {}},
		"a value forged at the end": {
			spoil: func(b *projecttest.Bucket) {
				e := entries(t, b)[19]
				b.Forge(e.Key, []byte(`{"sum":0}`), e.Meta)
			},
			mends: []project.Mend{{Key: "s1", Event: 38, Replaces: 41, Revision: 42}},
		},
		"two forged, of one key": {
			spoil: func(b *projecttest.Bucket) {
				e := entries(t, b)[39]
				b.Forge(e.Key, []byte(`{"sum":0}`), e.Meta)
				b.Forge(e.Key, []byte(`{"sum":1}`), e.Meta)
			},
			mends: []project.Mend{{Key: "s1", Event: 38, Replaces: 41, Revision: 43}, {Key: "s1", Event: 38, Replaces: 42, Revision: 44}},
		},
		"a foreign message under a key of ours": {
			spoil: func(b *projecttest.Bucket) { b.PutForeign("t1", []byte("x")) },
			mends: []project.Mend{{Key: "t1", Event: 38, Replaces: 41, Revision: 42}},
		},
		"the newest value of a key changed where it stands": {
			spoil: func(b *projecttest.Bucket) {
				b.Change(40, func(e *project.Entry) { e.Value = []byte(`{"sum":0}`) })
			},
			mends: []project.Mend{{Key: "s1", Event: 38, Replaces: 40, Revision: 41}},
		},
		"a value that is not the newest changed": {
			spoil: func(b *projecttest.Bucket) {
				b.Change(20, func(e *project.Entry) { e.Value = []byte(`{"sum":0}`) })
			},
			anew: "value 20 (key s1) is a past one",
		},
		"a value taken out":      {spoil: func(b *projecttest.Bucket) { b.Delete(20) }, anew: "1 of its 40 values are missing"},
		"a key that is not ours": {spoil: func(b *projecttest.Bucket) { b.PutForeign("x", nil) }, anew: "no key x"},
		"a value that is too far": {spoil: func(b *projecttest.Bucket) {
			e := entries(t, b)[39]
			e.Meta.Position = project.Position{Sequence: 99, Part: 1, Parts: 1}
			b.Forge(e.Key, e.Value, e.Meta)
		}, anew: "positions never go back"},
		"the key of a value changed": {
			spoil: func(b *projecttest.Bucket) { b.Change(20, func(e *project.Entry) { e.Key = "t1" }) },
			anew:  "stands in another one's place",
		},
		"another version of the view": {
			spoil: func(b *projecttest.Bucket) { b.Change(40, func(e *project.Entry) { e.Meta.Fold = 7 }) },
			anew:  "version 7 of its view",
		},
	} {
		for how, spoilFirst := range map[string]bool{"running": false, "stopped": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s := store(t, history(events)...)
				b := &projecttest.Bucket{}
				projecttest.Run(t, config(s, spec(newSums, b)), events)
				if spoilFirst {
					c.spoil(b)
				}
				r := start(t, config(s, spec(newSums, b)))
				if !spoilFirst {
					r.wait(events)
					c.spoil(b)
				}
				before := entriesOf(t, b)

				planned := r.rebuilt("sums", project.RebuildOptions{InPlace: true, DryRun: true})
				if planned.OK() != (len(c.mends) == 0 && c.anew == "") || !strings.Contains(planned.Anew, c.anew) {
					t.Errorf("planned %+v", planned)
				}
				if diff := cmp.Diff(before, entriesOf(t, b)); diff != "" {
					t.Errorf("a dry run wrote (-before +after):\n%s", diff)
				}
				result := r.rebuilt("sums", project.RebuildOptions{InPlace: true})
				if diff := cmp.Diff(c.mends, result.Mends, cmpopts.IgnoreFields(project.Mend{}, "Detail"), cmpopts.EquateEmpty()); c.anew == "" && diff != "" {
					t.Errorf("mends (-want +have):\n%s", diff)
				}
				if c.anew != "" {
					if result.OK() || !strings.Contains(result.Anew, c.anew) {
						t.Errorf("result %+v, want that it is built anew", result)
					}
					if diff := cmp.Diff(before, entriesOf(t, b)); diff != "" {
						t.Errorf("it wrote (-before +after):\n%s", diff)
					}
					return
				}
				if !result.OK() {
					t.Errorf("result %+v", result)
				}
				same(t, s, newSums, b)
				if found := verify(t, s, newSums, b).Buckets[0]; found.Mended != uint64(len(c.mends)) {
					t.Errorf("verify found %d mending values, want %d", found.Mended, len(c.mends))
				}

				// The view goes on from what is right, and so does one that is taken up from the bucket.
				last := projecttest.Append(t, newRegistry(), s, thing("s1", added{By: 1}), thing("t1", added{By: 1}))
				r.wait(last)
				if err := r.stop(); err != nil {
					t.Error(err)
				}
				last = projecttest.Append(t, newRegistry(), s, thing("s1", added{By: 1}))
				projecttest.Run(t, config(s, spec(newSums, b)), last)
				same(t, s, newSums, b)
				if again := verify(t, s, newSums, b); !again.OK() {
					t.Errorf("at the end: %+v", again)
				}
			})
		}
	}
}

// entriesOf gives all that stands, foreign messages included.
func entriesOf(t *testing.T, b project.Bucket) []project.Entry {
	t.Helper()
	var out []project.Entry
	for e := range b.All(bounded(t), 0) {
		out = append(out, e)
	}
	return out
}

// TestVerifyOfAForgedMend: what says that it mends is believed no more than anything else.
func TestVerifyOfAForgedMend(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*project.Entry){
		"other bytes":    func(e *project.Entry) { e.Value = []byte(`{"sum":0}`) },
		"other key":      func(e *project.Entry) { e.Key = "x" },
		"other source":   func(e *project.Entry) { e.Meta.Source.Sequence = 3 },
		"other position": func(e *project.Entry) { e.Meta.Position.Sequence = 3 },
	} {
		s := store(t, history(10)...)
		b := &projecttest.Bucket{}
		projecttest.Run(t, config(s, spec(newSums, b)), 10)
		all := entries(t, b)
		e := all[len(all)-1]
		e.Meta.Mended, e.Meta.Replaces = projecttest.Recorded(11), 2
		b.Change(2, func(e *project.Entry) { e.Value = nil })
		change(&e)
		b.Forge(e.Key, e.Value, e.Meta)
		if found := verify(t, s, newSums, b).Buckets[0]; found.Mended != 0 || len(found.Differences) != 2 || found.Differences[1].Revision != e.Revision+1 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestSkippedIsParkedNoMore: after a repair, or a rebuild where other values stood behind, a view that goes on all the while says of
// what was left out that it is parked no more.
func TestSkippedIsParkedNoMore(t *testing.T) {
	t.Parallel()
	s, g := store(t, thing("a", added{By: 1}), thing("a", spoilt{}), thing("a", added{By: 1}), thing("b", spoilt{})), &projecttest.Generations{}
	r := start(t, kept(s, g, newParking))
	r.wait(4)
	parked := func(want ...string) {
		t.Helper()
		v := r.until("sums", inState(project.StateRunning))
		have := []string{}
		for _, p := range v.Parked {
			have = append(have, p.Instance)
		}
		if diff := cmp.Diff(want, have, cmpopts.EquateEmpty()); diff != "" || v.ParkedCount != len(want) {
			t.Errorf("%d parked (-want +have):\n%s", v.ParkedCount, diff)
		}
	}
	parked("thing.a", "thing.b")
	r.wait(projecttest.Append(t, newRegistry(), s, order("sums", skipped{Event: 4})))
	if result := r.rebuilt("sums", project.RebuildOptions{InPlace: true}); !result.OK() || len(result.Mends) != 1 {
		t.Errorf("result %+v", result)
	}
	parked("thing.a")
	r.wait(projecttest.Append(t, newRegistry(), s, order("sums", skipped{Event: 2})))
	if result := r.rebuilt("sums", project.RebuildOptions{}); !result.OK() || result.Generation == nil {
		t.Errorf("result %+v", result)
	}
	parked()
	same(t, s, newParking, g.Read("sums"))
}

// TestRebuildOfAPausedView compares a paused view as far as it has come, and makes no new generation of it: neither now nor,
// unasked, when it goes on.
func TestRebuildOfAPausedView(t *testing.T) {
	t.Parallel()
	s, g := store(t, thing("a", added{By: 1})), &projecttest.Generations{}
	r := start(t, kept(s, g, newSums))
	r.wait(1)
	at := projecttest.Append(t, newRegistry(), s, order("sums", paused{}))
	r.until("sums", inState(project.StatePaused))
	projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}))
	if result := r.rebuilt("sums", project.RebuildOptions{}); !result.OK() || result.Events != at {
		t.Errorf("result %+v, want that the bucket equals the fold of %d events", result, at)
	}
	if _, err := r.done("sums", project.RebuildOptions{Anew: true}); !errors.Is(err, project.ErrStopped) || !strings.Contains(err.Error(), "resume it first") {
		t.Errorf("built anew with error %v", err)
	}
	if p, err := g.Pointer(bounded(t), "sums"); err != nil || p.Next != nil {
		t.Errorf("pointer %+v with error %v", p, err)
	}
	r.passes(projecttest.Append(t, newRegistry(), s, order("sums", resumed{})))
	same(t, s, newSums, g.Read("sums"))
}
