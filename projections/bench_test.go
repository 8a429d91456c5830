package projections_test

import (
	"fmt"
	"runtime"
	"testing"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/assignments"
)

// told is the n-th event of a fleet in which each node runs one module, in another version each time.
func told(n, keys int) es.Event {
	node := fmt.Sprintf("n%d", n%keys)
	at := projecttest.Recorded(uint64(n))
	return es.Event{
		Sequence: uint64(n + 1), Type: events.TypeAssignmentAssigned, Recorded: at, Effective: at,
		Ref: es.Ref{Aggregate: events.AggregateAssignment, Key: es.Key(node, "web")},
		Data: events.AssignmentAssigned{Told: events.Told{
			Node: node, Module: "web", Build: "b1", Commit: "c1",
			Reference: events.Reference{Package: &events.Package{Name: "web", Version: fmt.Sprintf("1.%d", n)}},
		}},
	}
}

// BenchmarkFold gives the cost of one event for the view of assignments: the most frequent one, over 10,000 keys.
func BenchmarkFold(b *testing.B) {
	const keys = 10_000
	all := make([]es.Event, keys)
	for i := range all {
		all[i] = told(i, keys)
	}
	view := assignments.New()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := view.Fold(all[i%keys]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMillionEvents folds a million events of 100,000 keys and gives what the view holds then, for each key.
func BenchmarkMillionEvents(b *testing.B) {
	const keys, count = 100_000, 1_000_000
	for b.Loop() {
		before := heapBytes()
		view := assignments.New()
		for n := range count {
			if _, err := view.Fold(told(n, keys)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heapBytes()-before)/keys, "bytes/key")
		hold(view)
	}
	b.ReportMetric(count*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func hold(v project.View) { runtime.KeepAlive(v) }

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
