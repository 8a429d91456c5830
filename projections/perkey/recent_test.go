package perkey

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"catenary/chain"
)

// TestRecentRecordsAreNoState folds with room for next to nothing and for all, where next may fail: the values are the same.
func TestRecentRecordsAreNoState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tables := map[int]*table[chain.Node]{}
		for _, limit := range []int{0, 2 * recordOverheadBytes, 10 * recordOverheadBytes, maxRecentBytes} {
			tables[limit] = newTable(chain.Nodes)
			tables[limit].records.limit = limit
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "key"))
			added := rapid.StringMatching(`[a-c]{0,20}`).Draw(t, "added")
			fails := rapid.IntRange(0, 5).Draw(t, "fails") == 0
			next := func(before *chain.Node) (chain.Node, error) {
				n := chain.Node{Node: key}
				if before != nil {
					n = *before
				}
				n.Labels = map[string]string{"all": n.Labels["all"] + added}
				if fails {
					if before != nil {
						before.Labels = map[string]string{"all": "spoilt"}
					}
					n.Node = "another"
				}
				return n, nil
			}
			given := map[string]bool{}
			for limit, table := range tables {
				value, err := table.change(key, next)
				if (err != nil) != fails {
					t.Fatalf("limit %d: %v", limit, err)
				}
				given[string(value)] = true
				check(t, table)
			}
			if len(given) != 1 {
				t.Fatalf("with room for few records and for many: %v", given)
			}
		}
	})
}

// check holds that the list is whole, within its limit, and knows its size.
func check(t *rapid.T, table *table[chain.Node]) {
	r := &table.records
	bytes, n := 0, 0
	for s := r.newest; s != nil; s = s.old {
		if s.record == nil || s.old != nil && s.old.newer != s || s.old == nil && r.oldest != s {
			t.Fatalf("the list is broken at %s", s.key)
		}
		bytes, n = bytes+s.recordBytes(), n+1
	}
	held := 0
	for _, s := range table.slots {
		if s.record != nil {
			held++
		}
	}
	if bytes != r.bytes || n != held || n > 1 && bytes > r.limit {
		t.Fatalf("%d of %d bytes in %d slots, %d hold a record, the limit is %d", r.bytes, bytes, n, held, r.limit)
	}
}

// TestManyKeys folds over many more keys than there is room for records: all values are at hand, few of them twice.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	table := newTable(chain.Nodes)
	table.records.limit = 1 << 20
	text := strings.Repeat("x", 100)
	for round := range 3 {
		for i := range keys {
			key := fmt.Sprint("n", i)
			value, err := table.change(key, func(before *chain.Node) (chain.Node, error) {
				if before == nil != (round == 0) || before != nil && before.Labels["round"] != fmt.Sprint(round-1) {
					t.Fatalf("round %d of %s goes on from %+v", round, key, before)
				}
				return chain.Node{Node: key, Labels: map[string]string{"round": fmt.Sprint(round), "text": text}}, nil
			})
			if err != nil || len(value) < len(text) {
				t.Fatalf("%s, %v", value, err)
			}
		}
	}
	if table.records.bytes > table.records.limit || len(table.slots) != keys {
		t.Errorf("%d bytes of records, %d keys", table.records.bytes, len(table.slots))
	}
}
