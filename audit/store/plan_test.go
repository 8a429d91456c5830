package store

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/es"
	"catenary/events"
)

// TestPlans checks that questions which read much read it in the order of the file, or of an index.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := smallChain(t)
	for query, not := range map[string]string{
		`SELECT r.turn, r."key", count(*) FROM record r WHERE r.turn IN (3, 4) GROUP BY r.turn, r."key"`:                             "TEMP B-TREE",
		`SELECT r.turn, r."key", r.valid_from, count(*) FROM record r WHERE r.turn IN (1, 2) GROUP BY r.turn, r."key", r.valid_from`: "TEMP B-TREE",
		`SELECT count(*) FROM record r WHERE r.turn IN (3, 4)`:                                                                       "SCAN",
		`SELECT sequence FROM event t WHERE t.actor = 'x' ORDER BY t.sequence DESC LIMIT 5`:                                          "TEMP B-TREE",
	} {
		rows, err := s.SQL(t.Context(), audit.SQLQuestion{Query: "EXPLAIN QUERY PLAN " + query})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows.Rows {
			if detail, _ := row[len(row)-1].(string); strings.Contains(detail, not) {
				t.Errorf("%s\nthe plan has a %s: %v", query, not, rows.Rows)
			}
		}
	}
}

// TestReportsOfWhatWasAdded counts what was added to a history in its place, and not what goes on after it.
func TestReportsOfWhatWasAdded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	tell := func(module, version string, at int, backfill bool) {
		r.add(es.Event{Ref: ref("n1", module), Recorded: minute(100), Effective: minute(at), Backfill: backfill}, events.AssignmentAssigned{Told: told("n1", module, version)})
	}
	tell("web", "1", 10, false)
	tell("web", "3", 30, false)
	tell("web", "2", 20, true)
	tell("pay", "1", 10, false)
	r.add(es.Event{Ref: ref("n1", "pay"), Recorded: minute(100), Effective: minute(30)}, events.AssignmentApplied{Seen: events.Seen{Node: "n1", Module: "pay", Build: "b"}})
	tell("pay", "0", 20, true)
	r.flush()
	s := running(t, Config{Events: r.stream})
	caughtUp(t, s, r.stream)
	deliveries, err := s.Report(t.Context(), audit.ReportQuestion{Report: audit.ReportDeliveries, By: audit.ByModule})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]audit.DeliveryCount{{Of: "pay", Started: 1, Changed: 1}, {Of: "web", Started: 1, Changed: 2}}, deliveries.Deliveries); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	rollbacks, err := s.Report(t.Context(), audit.ReportQuestion{Report: audit.ReportRollbacks, By: audit.ByModule})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]audit.RollbackCount{{Of: "pay", Lower: 1}}, rollbacks.Rollbacks); diff != "" {
		t.Errorf("roll-backs (-want +got):\n%s", diff)
	}
}
