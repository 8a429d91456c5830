package projections_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/internal/topology"
	"catenary/projections"
)

// limit bounds every wait of a test. It is reached only when something is broken.
const limit = 60 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	return estest.Bounded(t, limit)
}

// realBuckets makes the buckets of all views on a server of their own.
func realBuckets(t testing.TB) map[string]project.Bucket {
	t.Helper()
	nc := estest.Server(t, false).Connect(t)
	buckets := map[string]project.Bucket{}
	for _, name := range topology.ChainBuckets() {
		if err := natskv.Ensure(bounded(t), nc, topology.Bucket(name, topology.Options{BucketBytes: 64 << 20})); err != nil {
			t.Fatal(err)
		}
		b, err := natskv.Open(bounded(t), nc, name)
		if err != nil {
			t.Fatal(err)
		}
		buckets[name] = b
	}
	return buckets
}

func memoryBuckets() map[string]project.Bucket {
	buckets := map[string]project.Bucket{}
	for _, name := range topology.ChainBuckets() {
		buckets[name] = &projecttest.Bucket{}
	}
	return buckets
}

func specs(t testing.TB, buckets map[string]project.Bucket) []project.ViewSpec {
	t.Helper()
	list, err := project.Specs(projections.All, func(name string) (project.Bucket, error) { return buckets[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func config(t testing.TB, s es.Store, buckets map[string]project.Bucket) project.Config {
	t.Helper()
	return project.Config{Store: s, Registry: events.Registry(), Views: specs(t, buckets), Orders: projections.Orders()}
}

// all gives every value of every bucket.
func all(t testing.TB, buckets map[string]project.Bucket) map[string][]project.Entry {
	t.Helper()
	found := map[string][]project.Entry{}
	for name, b := range buckets {
		for e, err := range b.All(bounded(t), 0) {
			if err != nil {
				t.Fatal(err)
			}
			found[name] = append(found[name], e)
		}
	}
	return found
}

// longHistory gives facts that lead to values in every view, the same ones at each call.
func longHistory(t testing.TB) []projecttest.Fact {
	t.Helper()
	for seed := range 50 {
		facts := rapid.Custom(func(t *rapid.T) []projecttest.Fact { return drawHistory(t, 60) }).Example(seed)
		if len(facts) > 40 {
			return facts
		}
	}
	t.Fatal("no history is long enough")
	return nil
}

// TestOnceWhenKilledAnywhere kills the projector of all views at every single put, before the bucket has the value and after
// the bucket has it but before anybody knows. Each time it goes on from what stands, and in the end every bucket is what it
// would have been.
func TestOnceWhenKilledAnywhere(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Config{})
	tail := projecttest.Append(t, events.Registry(), s, longHistory(t)...)
	smooth := memoryBuckets()
	projecttest.Run(t, config(t, s, smooth), tail)
	want := all(t, smooth)
	left := 0
	for name, values := range want {
		left += len(values)
		if len(values) == 0 {
			t.Errorf("%s gets no value", name)
		}
	}

	buckets, marks := realBuckets(t), &projecttest.Marks{}
	for kills := 0; ; kills++ {
		if kills > 4*left {
			t.Fatalf("no end after %d kills", kills)
		}
		fault := projecttest.FaultLostAfter
		if kills%2 == 0 {
			fault = projecttest.FaultLostBefore
		}
		puts := killAtFirstPut(t, s, buckets, marks, fault, tail)
		if puts == 0 {
			break
		}
	}
	if diff := cmp.Diff(want, all(t, buckets), cmpopts.IgnoreFields(project.Entry{}, "Stored")); diff != "" {
		t.Errorf("after all kills (-want +have):\n%.3000s", diff)
	}
}

// killAtFirstPut runs a projector until it puts its first value, of which becomes what the fault says, and counts the puts.
func killAtFirstPut(t testing.TB, s es.Store, buckets map[string]project.Bucket, marks project.Marks, fault projecttest.Fault, tail uint64) int64 {
	t.Helper()
	killed, kill := context.WithCancel(bounded(t))
	defer kill()
	var puts atomic.Int64
	dying := map[string]project.Bucket{}
	for name, b := range buckets {
		dying[name] = &projecttest.Faulty{Bucket: b, Script: func(int) projecttest.Fault {
			if puts.Add(1) > 1 {
				return projecttest.FaultLostBefore // a dead process puts nothing
			}
			kill()
			return fault
		}}
	}
	cfg := config(t, s, dying)
	cfg.Marks = marks
	r, err := project.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(killed) }()
	if _, err := r.Wait(killed, tail); err == nil {
		kill() // nothing was left to do
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return puts.Load()
}

// TestTwoAtOnce runs two projectors of all views over the same buckets while events keep coming.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Config{})
	facts := longHistory(t)
	projecttest.Append(t, events.Registry(), s, facts[:20]...)
	buckets := realBuckets(t)
	running, stop := context.WithCancel(bounded(t))
	defer stop()
	var runners []*project.Runner
	ended := make(chan error, 2)
	for range 2 {
		r, err := project.New(config(t, s, buckets))
		if err != nil {
			t.Fatal(err)
		}
		runners = append(runners, r)
		go func() { ended <- r.Run(running) }()
	}
	for _, f := range facts[20:] {
		projecttest.Append(t, events.Registry(), s, f)
	}
	tail := uint64(len(facts))
	for i, r := range runners {
		if _, err := r.Wait(bounded(t), tail); err != nil {
			t.Errorf("projector %d: %v", i, err)
		}
	}
	stop()
	for range runners {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	report, err := project.Verify(bounded(t), project.Verification{
		Store: s, Registry: events.Registry(), NewViews: projections.All, Orders: projections.Orders(),
		Bucket: func(name string) (project.Bucket, error) { return buckets[name], nil },
	})
	if err != nil || !report.OK() {
		t.Errorf("report %+v, %v", report, err)
	}
}
