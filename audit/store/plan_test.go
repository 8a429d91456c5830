package store

import (
	"strings"
	"testing"

	"catenary/audit"
)

// TestReportsDoNotSort: what reports read comes in the order of an index.
func TestReportsDoNotSort(t *testing.T) {
	t.Parallel()
	s := smallChain(t)
	rows, err := s.SQL(t.Context(), audit.SQLQuestion{
		Query: "EXPLAIN QUERY PLAN SELECT k.node, k.module, " + toldColumns + toldInOrder + "k.kind = 'assignment' ORDER BY k.id, r.valid_from, r.id",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows.Rows {
		if detail, _ := row[len(row)-1].(string); strings.Contains(detail, "TEMP B-TREE") {
			t.Errorf("the plan sorts: %v", rows.Rows)
		}
	}
}
