package projections_test

import (
	"fmt"
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/assignments"
)

// BenchmarkFold gives the cost of one event for the view of assignments: the most frequent one, over 10,000 keys.
func BenchmarkFold(b *testing.B) {
	const keys = 10_000
	all := make([]es.Event, keys)
	for i := range all {
		node := fmt.Sprintf("n%d", i)
		at := projecttest.Recorded(uint64(i))
		all[i] = es.Event{
			Sequence: uint64(i + 1), Type: events.TypeAssignmentAssigned, Recorded: at, Effective: at,
			Ref: es.Ref{Aggregate: events.AggregateAssignment, Key: es.Key(node, "web")},
			Data: events.AssignmentAssigned{Told: events.Told{
				Node: node, Module: "web", Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1.20"}}, Build: "b1", Commit: "c1",
			}},
		}
	}
	view := assignments.New()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := view.Fold(all[i%keys]); err != nil {
			b.Fatal(err)
		}
	}
}
