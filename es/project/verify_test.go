package project_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

func TestVerifyFindsEveryDifference(t *testing.T) {
	t.Parallel()
	facts := history(40)
	for name, c := range map[string]struct {
		spoil func(b *projecttest.Bucket)
		want  []project.Difference
	}{
		"nothing": {func(*projecttest.Bucket) {}, []project.Difference{}},
		"a value changed where it stands": {func(b *projecttest.Bucket) {
			b.Change(20, func(e *project.Entry) { e.Value = []byte(`{"sum":0}`) })
		}, []project.Difference{{Kind: project.KindChanged, Key: "s1", Event: 18, Revision: 20}}},
		"the key of a value changed": {func(b *projecttest.Bucket) {
			b.Change(20, func(e *project.Entry) { e.Key = "x" })
		}, []project.Difference{{Kind: project.KindChanged, Key: "x", Event: 18, Revision: 20}}},
		"the actor of a value changed": {func(b *projecttest.Bucket) {
			b.Change(20, func(e *project.Entry) { e.Meta.Actor = "a9" })
		}, []project.Difference{{Kind: project.KindChanged, Key: "s1", Event: 18, Revision: 20}}},
		"a value taken out": {func(b *projecttest.Bucket) { b.Delete(20) },
			[]project.Difference{{Kind: project.KindMissing, Key: "s1", Event: 18}}},
		"a foreign message": {func(b *projecttest.Bucket) { b.PutForeign("x", nil) },
			[]project.Difference{{Kind: project.KindForeign, Key: "x", Revision: 41}}},
		"a value forged at the end": {func(b *projecttest.Bucket) {
			e := entries(t, b)[19]
			b.Forge(e.Key, []byte(`{"sum":0}`), e.Meta)
		}, []project.Difference{{Kind: project.KindExtra, Key: "s1", Event: 18, Revision: 41}}},
		"a value forged with the headers of the last one": {func(b *projecttest.Bucket) {
			e := entries(t, b)[39]
			b.Forge(e.Key, []byte(`{"sum":0}`), e.Meta)
		}, []project.Difference{{Kind: project.KindExtra, Key: "s1", Event: 38, Revision: 41}}},
		"a value in the middle that claims to be later": {func(b *projecttest.Bucket) {
			b.Change(20, func(e *project.Entry) { e.Meta.Position.Sequence = 30 })
		}, []project.Difference{{Kind: project.KindMissing, Key: "s1", Event: 18}, {Kind: project.KindExtra, Key: "s1", Event: 18, Revision: 20}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store(t, facts...)
			b := &projecttest.Bucket{}
			projecttest.Run(t, config(s, spec(newSums, b)), 40)
			c.spoil(b)
			report := verify(t, s, newSums, b)
			found := report.Buckets[0]
			if diff := cmp.Diff(c.want, found.Differences, cmpopts.IgnoreFields(project.Difference{}, "Detail"),
				cmpopts.SortSlices(func(a, b project.Difference) bool { return a.Kind > b.Kind })); diff != "" {
				t.Errorf("differences (-want +have):\n%s\nin %+v", diff, found)
			}
			if report.OK() != (len(c.want) == 0) || found.Values != 40 || found.Keys != 11 || report.Events != 40 || report.Head.Sequence != 40 {
				t.Errorf("report %+v", report)
			}
			if _, err := json.Marshal(report); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVerifyGoesOnAfterAForeignMessage has one between values of ours.
func TestVerifyGoesOnAfterAForeignMessage(t *testing.T) {
	t.Parallel()
	s := store(t, history(10)...)
	whole, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	projecttest.Run(t, config(s, spec(newSums, whole)), 10)
	for _, e := range entries(t, whole) {
		if e.Revision == 4 {
			b.PutForeign("x", nil)
		}
		b.Forge(e.Key, e.Value, e.Meta)
	}
	report := verify(t, s, newSums, b)
	if d := report.Buckets[0].Differences; len(d) != 1 || d[0].Kind != project.KindForeign || d[0].Revision != 4 {
		t.Errorf("differences %+v", d)
	}
}

func TestVerifyBehind(t *testing.T) {
	t.Parallel()
	s := store(t, history(40)...)
	b := &projecttest.Bucket{}
	if found := verify(t, s, newSums, b).Buckets[0]; found.Behind != 1 || found.OK() {
		t.Errorf("empty: %+v", found)
	}
	projecttest.Run(t, config(s, spec(newSums, b)), 40)
	b.Truncate(30)
	if found := verify(t, s, newSums, b).Buckets[0]; found.Behind != 31 || len(found.Differences) != 0 {
		t.Errorf("cut: %+v", found)
	}
	if found := verify(t, store(t), newSums, &projecttest.Bucket{}).Buckets[0]; !found.OK() {
		t.Errorf("nothing at all: %+v", found)
	}
	poisoned := store(t, thing("a", added{By: 1}), thing("a", spoilt{}), thing("a", added{By: 1}))
	b = &projecttest.Bucket{}
	r := start(t, config(poisoned, spec(newSums, b)))
	r.stopped("sums")
	if found := verify(t, poisoned, newSums, b).Buckets[0]; found.OK() || !strings.Contains(found.Unfolded, "event 2") || found.Values != 1 {
		t.Errorf("an event that can't be folded: %+v", found)
	}
}

// TestVerifyFindsAStreamThatWasCutShort covers case A11: the buckets know of events that the stream does not have.
func TestVerifyFindsAStreamThatWasCutShort(t *testing.T) {
	t.Parallel()
	facts := history(40)
	for _, left := range []int{0, 1, 30} {
		t.Run(fmt.Sprintf("to %d events", left), func(t *testing.T) {
			t.Parallel()
			b := &projecttest.Bucket{}
			projecttest.Run(t, config(store(t, facts...), spec(newSums, b)), 40)
			report := verify(t, store(t, facts[:left]...), newSums, b)
			found := report.Buckets[0]
			if report.OK() || len(found.Differences) == 0 {
				t.Fatalf("report %+v", report)
			}
			if d := found.Differences[len(found.Differences)-1]; d.Kind != project.KindExtra || !strings.Contains(d.Detail, fmt.Sprintf("the stream ends at event %d", left)) {
				t.Errorf("last difference %+v", d)
			}
		})
	}
}

// lostEnd is a store whose last event is lost: it is counted, and never comes.
type lostEnd struct{ es.Store }

func (s lostEnd) Tail(ctx context.Context) (uint64, error) {
	tail, err := s.Store.Tail(ctx)
	return tail + 1, err
}

// TestVerifyDoesNotWaitForALostEnd: whoever reads on for what is lost reads for ever.
func TestVerifyDoesNotWaitForALostEnd(t *testing.T) {
	t.Parallel()
	b := &projecttest.Bucket{}
	cfg := config(store(t, history(9)...), spec(newSums, b))
	_, err := project.Verify(bounded(t), project.Verification{
		Store: lostEnd{cfg.Store}, Registry: cfg.Registry, NewViews: func() []project.View { return []project.View{newSums()} },
		Bucket: func(string) (project.Bucket, error) { return b, nil },
	})
	if !errors.Is(err, es.ErrBrokenChain) || !strings.Contains(err.Error(), "event 10 is missing") {
		t.Errorf("it gives %v", err)
	}
}

func TestVerifyListsNoMoreThanItShould(t *testing.T) {
	t.Parallel()
	s := store(t, history(200)...)
	b := &projecttest.Bucket{}
	projecttest.Run(t, config(s, spec(newSums, b)), 200)
	for i := range uint64(200) {
		b.Change(i+1, func(e *project.Entry) { e.Value = nil })
	}
	if found := verify(t, s, newSums, b).Buckets[0]; len(found.Differences) != project.MaxDifferences || found.More != 200-project.MaxDifferences {
		t.Errorf("%d differences and %d more", len(found.Differences), found.More)
	}
}

// TestVerifyWhileRunning verifies a bucket that grows all the time: values of later events are no differences, and the
// bucket that is behind is waited for.
func TestVerifyWhileRunning(t *testing.T) {
	t.Parallel()
	for name, newBucket := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store(t, history(2000)...)
			b := newBucket(t)
			r := start(t, config(s, spec(newSums, b)))
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						projecttest.Append(t, newRegistry(), s, history(20)...)
					}
				}
			}()
			for range 3 {
				report, err := project.Verify(bounded(t), project.Verification{
					Store: s, Registry: newRegistry(),
					NewViews: func() []project.View { return []project.View{newSums()} },
					Bucket:   func(string) (project.Bucket, error) { return b, nil },
				})
				if err != nil {
					t.Fatal(err)
				}
				if !report.OK() || report.Events < 2000 {
					t.Errorf("report %+v", report)
				}
				digest, err := project.Digest(bounded(t), b, report.Buckets[0].Revision)
				if err != nil || digest != report.Buckets[0].Digest {
					t.Errorf("digest %s, %v, want %s", digest, err, report.Buckets[0].Digest)
				}
			}
			close(stop)
			<-stopped
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDigestTellsBucketsApart(t *testing.T) {
	t.Parallel()
	s := store(t, history(20)...)
	b := &projecttest.Bucket{}
	projecttest.Run(t, config(s, spec(newSums, b)), 20)
	whole, err := project.Digest(bounded(t), b, 20)
	if err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*project.Entry){
		func(e *project.Entry) { e.Key += "x" },
		func(e *project.Entry) { e.Value = append(e.Value, ' ') },
		func(e *project.Entry) { e.Meta.Actor = "x" },
		func(e *project.Entry) { e.Meta.Backfill = true },
	} {
		c := &projecttest.Bucket{}
		projecttest.Run(t, config(s, spec(newSums, c)), 20)
		if same, err := project.Digest(bounded(t), c, 20); err != nil || same != whole {
			t.Errorf("the same bucket: %s, %v", same, err)
		}
		c.Change(11, change)
		if other, err := project.Digest(bounded(t), c, 20); err != nil || other == whole {
			t.Errorf("change %d is not seen: %v", i, err)
		}
	}
	if _, err := project.Digest(bounded(t), b, 21); err == nil {
		t.Error("a digest over more than there is")
	}
}

// BenchmarkRunner gives how fast events become values, from a store in memory into a bucket on a real server and in
// memory.
func BenchmarkRunner(b *testing.B) {
	facts := make([]projecttest.Fact, 50_000)
	for i := range facts {
		facts[i] = thing(fmt.Sprint("t", i%5000), added{By: 1})
	}
	s := store(b, facts...)
	bus := estest.Server(b, false)
	made := 0
	for name, newBucket := range map[string]func() project.Bucket{
		"memory": func() project.Bucket { return &projecttest.Bucket{} },
		"jetstream": func() project.Bucket {
			made++
			return onServer(b, bus, fmt.Sprint("bench", made))
		},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				projecttest.Run(b, project.Config{Store: es.Store(s), Registry: newRegistry(), Views: []project.ViewSpec{spec(newSums, newBucket())}}, uint64(len(facts)))
			}
			b.ReportMetric(float64(b.N*len(facts))/b.Elapsed().Seconds(), "events/s")
		})
	}
}
