package project_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/internal/topology"
)

// backends make empty buckets: in memory, and on a real server.
func backends(t *testing.T) map[string]func(t testing.TB) project.Bucket {
	t.Helper()
	var made atomic.Int64
	bus := estest.Server(t, false)
	return map[string]func(testing.TB) project.Bucket{
		"memory":    func(testing.TB) project.Bucket { return &projecttest.Bucket{} },
		"jetstream": func(t testing.TB) project.Bucket { return onServer(t, bus, fmt.Sprint("b", made.Add(1))) },
	}
}

func onServer(t testing.TB, bus *estest.Bus, name string) *natskv.Bucket {
	t.Helper()
	nc := bus.Connect(t)
	if err := natskv.Ensure(bounded(t), nc, topology.Bucket(name, topology.Options{BucketBytes: 64 << 20})); err != nil {
		t.Fatal(err)
	}
	b, err := natskv.Open(bounded(t), nc, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wanted gives what a bucket has to hold after the facts.
func wanted(t testing.TB, s es.Store) []project.Entry {
	t.Helper()
	b := &projecttest.Bucket{}
	tail, err := s.Tail(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	projecttest.Run(t, config(s, spec(newSums, b)), tail)
	return entries(t, b)
}

var stored = cmpopts.IgnoreFields(project.Entry{}, "Stored")

// groups are how many values a bucket takes at once: each by itself, and fewer than there are.
func groups() []int { return []int{1, 5} }

// TestOnceWhenKilledAnywhere kills the projector at every single put, before the bucket has it and after, and runs it
// again: the bucket is what it would have been. Where several are put together, that is in the middle of them too.
func TestOnceWhenKilledAnywhere(t *testing.T) {
	t.Parallel()
	s := store(t, history(20)...)
	want := wanted(t, s)
	for name, newBucket := range backends(t) {
		for _, group := range groups() {
			t.Run(fmt.Sprintf("%s, %d together", name, group), func(t *testing.T) {
				t.Parallel()
				killAnywhere(t, s, want, newBucket, group)
			})
		}
	}
}

func killAnywhere(t *testing.T, s es.Store, want []project.Entry, newBucket func(testing.TB) project.Bucket, group int) {
	t.Helper()
	for _, fault := range []projecttest.Fault{projecttest.FaultLostBefore, projecttest.FaultLostAfter} {
		for k := 1; k <= len(want); k++ {
			b, marks := newBucket(t), &projecttest.Marks{}
			killed, kill := context.WithCancel(bounded(t))
			faulty := &projecttest.Faulty{Bucket: b, Group: group, Script: func(n int) projecttest.Fault {
				switch {
				case n < k:
					return projecttest.FaultNone
				case n == k:
					kill()
					return fault
				}
				return projecttest.FaultLostBefore // a dead process puts nothing
			}}
			cfg := config(s, spec(newSums, faulty))
			cfg.Marks = marks
			first, err := project.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := first.Run(killed); err != nil {
				t.Fatal(err)
			}
			cfg = config(s, spec(newSums, b))
			cfg.Marks = marks
			projecttest.Run(t, cfg, 20)
			if diff := cmp.Diff(want, entries(t, b), stored); diff != "" {
				t.Fatalf("killed at put %d (fault %d) (-want +have):\n%s", k, fault, diff)
			}
		}
	}
}

// TestOnceWhenAnswersAreLost loses every kind of answer, one after the other, while the projector goes on.
func TestOnceWhenAnswersAreLost(t *testing.T) {
	t.Parallel()
	s := store(t, history(20)...)
	want := wanted(t, s)
	for name, newBucket := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, fault := range []projecttest.Fault{projecttest.FaultLostBefore, projecttest.FaultLostAfter, projecttest.FaultFull} {
				for k := 1; k <= len(want); k += 3 {
					b := newBucket(t)
					faulty := &projecttest.Faulty{Bucket: b, Group: groups()[k%2], Script: func(n int) projecttest.Fault {
						if n == k {
							return fault
						}
						return projecttest.FaultNone
					}}
					projecttest.Run(t, config(s, spec(newSums, faulty)), 20)
					if diff := cmp.Diff(want, entries(t, b), stored); diff != "" {
						t.Fatalf("fault %d at put %d (-want +have):\n%s", fault, k, diff)
					}
				}
			}
		})
	}
}

// TestOnceByTwo runs two projectors over one bucket: both come to the end, and each value is stored once.
func TestOnceByTwo(t *testing.T) {
	t.Parallel()
	for name, newBucket := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store(t, history(500)...)
			b := newBucket(t)
			first := start(t, config(s, spec(newSums, b)))
			second := start(t, config(s, spec(newSums, b)))
			for _, r := range []*running{first, second} {
				r.wait(500)
			}
			projecttest.Append(t, newRegistry(), s, history(100)...)
			for _, r := range []*running{first, second} {
				r.wait(600)
			}
			if a, b := first.wait(600), second.wait(600); !cmp.Equal(a, b) {
				t.Errorf("the two are at %v and %v", a, b)
			}
			if diff := cmp.Diff(wanted(t, s), entries(t, b), stored); diff != "" {
				t.Errorf("two projectors (-want +have):\n%.3000s", diff)
			}
			if err := first.stop(); err != nil {
				t.Error(err)
			}
			projecttest.Append(t, newRegistry(), s, history(10)...)
			second.wait(610)
			same(t, s, newSums, b)
		})
	}
}

// TestFullBucketHoldsUpNobody has one bucket that takes nothing for a while.
func TestFullBucketHoldsUpNobody(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	full.Store(true)
	s := store(t, history(1000)...)
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	faulty := &projecttest.Faulty{Bucket: a, Script: func(int) projecttest.Fault {
		if full.Load() {
			return projecttest.FaultFull
		}
		return projecttest.FaultNone
	}}
	r := start(t, config(s, spec(newSums, faulty), spec(newEverything, b)))
	if _, err := r.Wait(bounded(t), 1000, "everything"); err != nil {
		t.Fatal(err)
	}
	v := r.until("sums", func(v project.ViewStatus) bool { return v.Reason != "" })
	if v.State != project.StateWaiting || v.Behind != 1000 {
		t.Errorf("status %+v", v)
	}
	full.Store(false)
	r.wait(1000)
	same(t, s, newSums, a)
	if v := r.until("sums", func(v project.ViewStatus) bool { return v.State == project.StateRunning }); v.Reason != "" {
		t.Errorf("status %+v", v)
	}
}

// TestStopComesAfterWhatIsOnItsWay has the value before an event that can't be folded get lost: the view stops with that
// value stored.
func TestStopComesAfterWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	for _, fault := range []projecttest.Fault{projecttest.FaultLostBefore, projecttest.FaultLostAfter} {
		s := store(t, thing("a", added{By: 1}), thing("a", spoilt{}))
		b := &projecttest.Bucket{}
		faulty := &projecttest.Faulty{Bucket: b, Script: func(n int) projecttest.Fault {
			if n == 1 {
				return fault
			}
			return projecttest.FaultNone
		}}
		r := start(t, config(s, spec(newSums, faulty)))
		if v := r.stopped("sums"); v.At != 2 || v.Position != (project.Progress{Event: 1, Revision: 1}) {
			t.Errorf("fault %d: %+v", fault, v)
		}
		if n := len(entries(t, b)); n != 1 {
			t.Errorf("fault %d: %d values stand", fault, n)
		}
	}
}

// away is a store whose server does not answer for a while.
type away struct {
	es.Store
	now *atomic.Bool
}

func (s away) Tail(ctx context.Context) (uint64, error) {
	if s.now.Load() {
		return 0, errors.Mark(errors.New("nobody answers"), es.ErrUnavailable)
	}
	return s.Store.Tail(ctx)
}

// TestStatusWhileTheStreamIsAway tells that from damage.
func TestStatusWhileTheStreamIsAway(t *testing.T) {
	t.Parallel()
	s := away{Store: store(t, history(10)...), now: &atomic.Bool{}}
	r := start(t, config(s, spec(newSums, &projecttest.Bucket{})))
	r.wait(10)
	s.now.Store(true)
	if found := r.Status(bounded(t)); !found.Away || found.Tail != 10 || !strings.Contains(found.Reason, "nobody answers") {
		t.Errorf("while it is away: %+v", found)
	}
	s.now.Store(false)
	if found := r.Status(bounded(t)); found.Away || found.Reason != "" {
		t.Errorf("afterwards: %+v", found)
	}
}
