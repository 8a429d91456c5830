package proof_test

import (
	"testing"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/estest"
)

// BenchmarkVerifyExport is what it costs to check an event of an export, its hash and its place in the tree.
func BenchmarkVerifyExport(b *testing.B) {
	chain := estest.Chain{Label: "a"}
	var head es.Head
	var all []proof.Record
	for _, m := range chain.Next(10_000) {
		r, err := proof.NewRecord(head, m)
		if err != nil {
			b.Fatal(err)
		}
		all, head = append(all, r), r.Head()
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		_, err := proof.VerifyExport(func(yield func(proof.Record, error) bool) {
			for _, r := range all {
				if !yield(r, nil) {
					return
				}
			}
		}, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(all)*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkLeaf is what an event adds to the feed of the tree, beside the check of its hash.
func BenchmarkLeaf(b *testing.B) {
	var a proof.Accumulator
	for n := uint64(1); b.Loop(); n++ {
		a.Add(es.Head{Sequence: n})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
