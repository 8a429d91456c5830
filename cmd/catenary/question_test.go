package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
	"catenary/internal/topology"
)

// asked lets a test see a question and say what is answered.
type asked func(body []byte) any

// refusal is an answer that is an error.
type refusal struct{ code, message, hint string }

// answering gives a caller on a bus where questions have the answers of the test: for pages, times and errors that a chain
// would need long to have.
func answering(t *testing.T, answers map[string]asked) caller {
	t.Helper()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	for name, answer := range answers {
		_, err := nc.Subscribe(topology.QuerySubject(name), func(m *nats.Msg) {
			found := answer(m.Data)
			reply := nats.NewMsg(m.Reply)
			if r, ok := found.(refusal); ok {
				reply.Header.Set("Nats-Service-Error", r.message)
				reply.Header.Set("Nats-Service-Error-Code", r.code)
				reply.Header.Set("Cat-Hint", r.hint)
			} else {
				reply.Header.Set("Cat-Part", "1")
				reply.Header.Set("Cat-Stream", "end")
				var err error
				if reply.Data, err = json.Marshal(found); err != nil {
					t.Error(err)
				}
			}
			if err := m.RespondMsg(reply); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return caller{t: t, url: bus.URL(), env: map[string]string{"CATENARY_ZONE": "Europe/Berlin"}}
}

// questionOf reads a question.
func questionOf[Q any](t *testing.T, body []byte) Q {
	t.Helper()
	var q Q
	if err := json.Unmarshal(body, &q); err != nil {
		t.Error(err)
	}
	return q
}

// noon is a time that answers speak of.
func noon() time.Time { return time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC) }

func packaged(name, version string) events.Reference {
	return events.Reference{Package: &events.Package{Name: name, Version: version}}
}

// standing is something that stood.
func standing(node, module, version string) audit.Standing {
	return audit.Standing{Node: node, Module: module, Reference: packaged(module, version), Since: noon().Add(-time.Hour), Sequence: 7, Known: noon(), Commit: strings.Repeat("ab", 20)}
}

// TestAsOfPages reads an answer of three pages: whole without a limit, at one moment; page by page with one.
func TestAsOfPages(t *testing.T) {
	t.Parallel()
	var moments []time.Time
	c := answering(t, map[string]asked{audit.QuestionAsOf: func(body []byte) any {
		q := questionOf[audit.AsOfQuestion](t, body)
		moments = append(moments, q.At)
		a := audit.AsOfAnswer{Shows: audit.ShowsTold, Moment: q.Moment, Basis: audit.Basis{Through: 99}}
		page := map[string]string{"": "p2", "p2": "p3"}
		a.Next = page[q.Cursor]
		a.Assignments = []audit.Standing{standing("n1", "m"+q.Cursor, "1.20")}
		return a
	}})
	whole := read[audit.AsOfAnswer](c, "as-of", "2h", "ago")
	var modules []string
	for _, s := range whole.Assignments {
		modules = append(modules, s.Module)
	}
	if diff := cmp.Diff([]string{"m", "mp2", "mp3"}, modules); diff != "" || whole.Next != "" || whole.Shows != audit.ShowsTold {
		t.Errorf("the whole answer is %+v (-want +got):\n%s", whole, diff)
	}
	if len(moments) != 3 || !moments[0].Equal(moments[1]) || !moments[0].Equal(moments[2]) {
		t.Errorf("it was asked at %v, want one moment", moments)
	}
	page := c.ok("as-of", "2026-08-01 12:00", "--limit", "1")
	want := `NODE  MODULE  TOLD    SINCE                      COMMIT        REQUIRED BY  EVENT
n1    m       m@1.20  2026-08-01 11:00:00 +0200  abababababab               7
`
	if diff := cmp.Diff(want, page.out); diff != "" {
		t.Errorf("the first page (-want +got):\n%s", diff)
	}
	for _, words := range []string{"what nodes were told at 2026-08-01 12:00:00 +0200 (event 99): 1", "--cursor p2"} {
		if !strings.Contains(page.err, words) {
			t.Errorf("it says\n%swant %q", page.err, words)
		}
	}
	if next := c.ok("as-of", "2026-08-01 12:00", "--limit", "1", "--cursor", "p3", "-o", "name"); next.out != "n1.mp3\n" || strings.Contains(next.err, "cursor") {
		t.Errorf("the last page is %q and says %q", next.out, next.err)
	}
}

// TestAsOfObserved asks what ran, as known at another time: the answer says so.
func TestAsOfObserved(t *testing.T) {
	t.Parallel()
	c := answering(t, map[string]asked{audit.QuestionAsOf: func(body []byte) any {
		q := questionOf[audit.AsOfQuestion](t, body)
		if !q.Observed || !q.KnownAt.Equal(noon()) || q.Node != "n1" || q.Module != "web" {
			t.Errorf("the question is %+v", q)
		}
		s := standing("n1", "web", "1.20")
		no := false
		s.Healthy, s.Drift, s.Reported = &no, "edited by hand", noon()
		return audit.AsOfAnswer{Shows: audit.ShowsObserved, Moment: q.Moment, Assignments: []audit.Standing{s}}
	}})
	found := c.ok("as-of", "2026-08-01", "--known-at", "2026-08-01 12:00", "--observed", "--node", "n1", "--module", "web")
	for _, words := range []string{"OBSERVED", "unhealthy, drift: edited by hand"} {
		if !strings.Contains(found.out, words) {
			t.Errorf("it shows\n%swant %q", found.out, words)
		}
	}
	if want := "what nodes reported to run at 2026-08-01 00:00:00 +0200, as known at 2026-08-01 12:00:00 +0200"; !strings.Contains(found.err, want) {
		t.Errorf("it says\n%swant %q", found.err, want)
	}
}

// TestDiffEnds checks the exit codes of diff, and what is compared with what.
func TestDiffEnds(t *testing.T) {
	t.Parallel()
	var last audit.DiffQuestion
	answer := any(nil)
	c := answering(t, map[string]asked{audit.QuestionDiff: func(body []byte) any {
		last = questionOf[audit.DiffQuestion](t, body)
		if a, ok := answer.(audit.DiffAnswer); ok {
			a.From = audit.DiffSide{Shows: audit.ShowsTold, Moment: last.From.Moment, Node: last.From.Node}
			a.To = audit.DiffSide{Shows: audit.ShowsTold, Moment: last.To.Moment, Node: last.To.Node}
			return a
		}
		return answer
	}})
	before, after := standing("n1", "web", "1.20"), standing("n1", "web", "1.21")
	differs := audit.DiffAnswer{Changed: 1, Started: 1, Ended: 1, Same: 5, Basis: audit.Basis{Through: 99}, Differences: []audit.Difference{
		{Node: "n1", Module: "web", Kind: audit.DiffChanged, Before: &before, After: &after},
		{Node: "n1", Module: "api", Kind: audit.DiffStarted, After: &after}, {Node: "n1", Module: "db", Kind: audit.DiffEnded, Before: &before},
	}}
	same := audit.DiffAnswer{Same: 5}
	for _, call := range []struct {
		args   []string
		answer any
		code   int
		asks   audit.DiffQuestion
		says   []string
	}{
		{[]string{"2026-08-01", "2026-08-02"}, same, 0, audit.DiffQuestion{From: at(noon().Add(-12 * time.Hour)), To: at(noon().Add(12 * time.Hour))}, []string{"0 changed, 5 the same"}},
		{[]string{"2026-08-01", "2026-08-02", "--node", "n1", "--module", "web"}, differs, 1, audit.DiffQuestion{
			From: of("n1", noon().Add(-12*time.Hour)), To: of("n1", noon().Add(12*time.Hour)), Module: "web",
		}, []string{"changed  n1    web     web@1.20  web@1.21", "started  n1    api", "ended    n1    db      web@1.20", "1 started, 1 ended, 1 changed, 5 the same (event 99)"}},
		{[]string{"staging", "production"}, differs, 1, audit.DiffQuestion{From: of("staging", time.Time{}), To: of("production", time.Time{})},
			[]string{"STAGING", "PRODUCTION", "only production", "only staging", "differs"}},
		{[]string{"yesterday", "now", "--as-of", "2026-08-01"}, same, 0, audit.DiffQuestion{From: of("yesterday", noon().Add(-12*time.Hour)), To: of("now", noon().Add(-12*time.Hour))}, nil},
		{[]string{"staging", "production"}, refusal{"404", "no node staging", "see get nodes"}, 11, audit.DiffQuestion{From: of("staging", time.Time{}), To: of("production", time.Time{})}, []string{"no node staging"}},
		{[]string{"staging", "production"}, refusal{"500", "disk", ""}, 11, audit.DiffQuestion{From: of("staging", time.Time{}), To: of("production", time.Time{})}, []string{"disk"}},
		{[]string{"last tusday", "now"}, nil, 2, audit.DiffQuestion{}, []string{"last tusday", "did you mean tuesday", "two nodes"}},
		{[]string{"staging", "production", "--node", "n1"}, nil, 2, audit.DiffQuestion{}, []string{"--node is for two moments"}},
		{[]string{"staging"}, nil, 2, audit.DiffQuestion{}, []string{"TIME1 TIME2 or NODE1 NODE2"}},
	} {
		last, answer = audit.DiffQuestion{}, call.answer
		found := c.must(call.code, append([]string{"diff"}, call.args...)...)
		if diff := cmp.Diff(call.asks, last); diff != "" {
			t.Errorf("diff %q asks (-want +got):\n%s", call.args, diff)
		}
		for _, words := range call.says {
			if !strings.Contains(found.out+found.err, words) {
				t.Errorf("diff %q says\n%s%swant %q", call.args, found.out, found.err, words)
			}
		}
	}
	answer = differs
	if found := c.must(1, "diff", "staging", "production", "-o", "json"); strings.Contains(found.err, "catenary:") || !strings.Contains(found.out, `"changed":1`) {
		t.Errorf("a difference is told as an error:\n%s%s", found.out, found.err)
	}
	gone := caller{t: t, url: "nats://127.0.0.1:1"}
	gone.must(11, "diff", "staging", "production", "--timeout", "1s")
}

func at(t time.Time) audit.Side { return audit.Side{Moment: audit.Moment{At: t}} }

func of(node string, t time.Time) audit.Side {
	s := at(t)
	s.Node = node
	return s
}

// TestBlameShows reads an answer with all there can be.
func TestBlameShows(t *testing.T) {
	t.Parallel()
	c := answering(t, map[string]asked{audit.QuestionBlame: func(body []byte) any {
		q := questionOf[audit.BlameQuestion](t, body)
		now, before := standing(q.Node, q.Module, "1.21"), standing(q.Node, q.Module, "1.20")
		now.RequiredBy = []string{"shop"}
		return audit.BlameAnswer{
			Shows: audit.ShowsTold, Moment: audit.Moment{At: noon()}, Node: q.Node, Module: q.Module, Stands: true,
			Change: audit.Deed{
				Sequence: 7, Event: "e7", Type: "assignment.assigned.v1", Effective: noon().Add(-time.Hour), Recorded: noon(), Backfill: true, Actor: audit.Person{ID: "operator"},
				OnBehalfOf: &audit.Person{ID: "x1", Name: "ann"}, Reason: "new start page", Rollout: "r1", Command: "c1", Causation: "c0", Correlation: "k",
			},
			Touched: &audit.Deed{Sequence: 9, Effective: noon(), Actor: audit.Person{ID: "operator"}}, Now: &now, Before: &before,
			Published: &audit.TracedPublication{At: noon(), Vetoed: true}, Build: &audit.TracedBuild{ID: "b1", At: noon()},
			Commit: &audit.TracedCommit{Commit: "abc", Repository: "acme/shop", Author: &audit.Person{ID: "x2", Name: "ben"}, Merged: noon()},
		}
	}})
	want := `node         n 1
module       web
told         web@1.21
since        2026-08-01 11:00:00 +0200
required by  shop
by           operator on behalf of ann
when         2026-08-01 11:00:00 +0200, recorded 2026-08-01 12:00:00 +0200 (backfill)
why          new start page
rollout      r1
command      c1
caused by    c0
correlation  k
event        7 assignment.assigned.v1 e7
said again   2026-08-01 12:00:00 +0200 by operator, event 9
before       web@1.20, since 2026-08-01 11:00:00 +0200
published    2026-08-01 12:00:00 +0200 (vetoed)
build        b1 at 2026-08-01 12:00:00 +0200
commit       abc of acme/shop by ben, merged 2026-08-01 12:00:00 +0200
`
	if diff := cmp.Diff(want, c.ok("blame", "n 1", "web").out); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	if found := c.ok("blame", "n 1", "web", "-o", "name").out; found != "7\n" {
		t.Errorf("its name is %q, want the event", found)
	}
	if b := read[audit.BlameAnswer](c, "blame", "n 1", "web"); b.Change.OnBehalfOf.Name != "ann" {
		t.Errorf("the answer is %+v", b)
	}
}

// TestReportShows reads each report.
func TestReportShows(t *testing.T) {
	t.Parallel()
	c := answering(t, map[string]asked{audit.QuestionReport: func(body []byte) any {
		q := questionOf[audit.ReportQuestion](t, body)
		a := audit.ReportAnswer{Report: q.Report, By: q.By, Since: q.Since, Until: noon(), Basis: audit.Basis{Through: 9}}
		switch q.Report {
		case audit.ReportDeliveries:
			if q.Zone != "Europe/Berlin" || q.By != audit.ByWeek {
				t.Errorf("the question is %+v", q)
			}
			a.Deliveries = []audit.DeliveryCount{{Of: "2026-05-04", Started: 1, Changed: 1200}, {Of: "2026-05-11", Changed: 34, Ended: 2}}
		case audit.ReportRollbacks:
			a.Rollbacks = []audit.RollbackCount{{Of: "production", Lower: 9, Returned: 3}}
		case audit.ReportDrift:
			if diff := cmp.Diff([]string{"a", "b"}, q.Nodes); diff != "" {
				t.Errorf("the nodes (-want +got):\n%s", diff)
			}
			a.Drift = []audit.DriftCount{{From: "a", To: "b", Modules: []string{"x", "y"}, Alike: 60, Single: 1}, {From: "a", To: "a", Observed: true, Modules: []string{}}}
		case audit.ReportLeadTime:
			a.LeadTimes = []audit.LeadTime{{Of: "production", Deliveries: 7, FromCommit: 5, Median: audit.Duration(90 * time.Minute), P90: audit.Duration(50*time.Hour + 59*time.Second), Longest: audit.Duration(time.Second)}}
		}
		return a
	}})
	for args, want := range map[string][2]string{
		"deliveries --by week --since 2026-05-01": {`WEEK        STARTED  CHANGED  ENDED
2026-05-04  1        1,200    0
2026-05-11  0        34       2
`, "1 started, 1,234 changed, 2 ended since 2026-05-01 00:00:00 +0200 until 2026-08-01 12:00:00 +0200 (told, event 9)"},
		"rollbacks": {`NODE        LOWER  RETURNED
production  9      3
`, "9 to a lower version, 3 others back"},
		"drift --node a --node b": {`FROM      TO            DIFFER  ALIKE  SINGLE  MODULES
a         b             2       60     1       x, y
a (told)  a (observed)  0       0      0
`, "2 compared at 2026-08-01 12:00:00 +0200"},
		"lead-time": {`NODE        DELIVERIES  FROM COMMIT  MEDIAN   90%     LONGEST
production  7           5            1h30m  2d2h  1s
`, "7 deliveries"},
	} {
		found := c.ok(append([]string{"report"}, strings.Fields(args)...)...)
		if diff := cmp.Diff(strings.Join(strings.Fields(want[0]), " "), strings.Join(strings.Fields(found.out), " ")); diff != "" {
			t.Errorf("report %s (-want +got):\n%s", args, diff)
		}
		if !strings.Contains(found.err, want[1]) {
			t.Errorf("report %s says\n%swant %q", args, found.err, want[1])
		}
	}
	c.must(exitUsage, "report", "deliverys")
	c.must(exitUsage, "report")
}

// TestSQLShows asks by argument and by standard input, in each format.
func TestSQLShows(t *testing.T) {
	t.Parallel()
	var last audit.SQLQuestion
	c := answering(t, map[string]asked{
		audit.QuestionSQL: func(body []byte) any {
			last = questionOf[audit.SQLQuestion](t, body)
			if strings.HasSuffix(last.Query, "slowly") {
				return refusal{"408", "the statement did not end within 2s", "ask for less"}
			}
			if strings.HasPrefix(last.Query, "DROP") {
				return refusal{"400", "not authorized", "only what reads"}
			}
			return audit.SQLAnswer{Columns: []string{"node", "n"}, Rows: [][]any{{"a, b", int64(math.MaxInt64)}, {nil, 0.5}, {true, "1.20"}}, More: true, Basis: audit.Basis{Through: 9}}
		},
		audit.QuestionSQLSchema: func([]byte) any {
			return audit.SQLSchema{DDL: "CREATE …", Tables: []audit.SQLTable{{Name: "assignments", View: true, About: "who was told what", Columns: []audit.SQLColumn{{Name: "node", Type: "TEXT", About: "the node"}}}}}
		},
	})
	if found := c.ok("sql", "SELECT ?, ?", "x", "1.20", "-o", "csv"); found.out != "node,n\n\"a, b\",9223372036854775807\n,0.5\ntrue,1.20\n" || !strings.Contains(found.err, "more rows: 3 is what fits into the 8 MiB of an answer") {
		t.Errorf("the CSV is %q, and it says %q", found.out, found.err)
	}
	if diff := cmp.Diff([]any{"x", "1.20"}, last.Arguments); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if found := c.feed("SELECT 1\n", "sql", "-"); found.code != exitOK || last.Query != "SELECT 1\n" || !strings.HasPrefix(found.out, "node  n\na, b  9223372036854775807\n") {
		t.Errorf("by standard input %q was asked: %+v", last.Query, found)
	}
	if found := c.ok("sql", "SELECT 1", "--limit", "3"); !strings.Contains(found.err, "than the limit of 3: give a higher --limit, up to 10000") {
		t.Errorf("of a limit it says %q", found.err)
	}
	if found := c.must(exitTimedOut, "sql", "SELECT slowly", "--timeout", "2s"); !strings.Contains(found.err, "within 2s") || time.Duration(last.Timeout) != 2*time.Second {
		t.Errorf("a statement that takes too long was given %v, and is told %q", last.Timeout, found.err)
	}
	if a := read[audit.SQLAnswer](c, "sql", "SELECT 1"); len(a.Rows) != 3 || !a.More {
		t.Errorf("the answer is %+v", a)
	}
	if found := c.must(exitUsage, "sql", "DROP TABLE x"); !strings.Contains(found.err, "not authorized") || !strings.Contains(found.err, "only what reads") {
		t.Errorf("a statement that writes is told\n%s", found.err)
	}
	if found := c.ok("sql", "--schema").out; found != "TABLE        COLUMN  TYPE  ABOUT\nassignments          view  who was told what\nassignments  node    TEXT  the node\n" {
		t.Errorf("the schema is\n%s", found)
	}
	if schema := read[audit.SQLSchema](c, "sql", "--schema"); schema.DDL == "" || len(schema.Tables) != 1 {
		t.Errorf("the schema is %+v", schema)
	}
	c.must(exitUsage, "sql")
	c.must(exitUsage, "sql", "--schema", "SELECT 1")
	c.must(exitUsage, "sql", "SELECT 1", "-o", "name")
	if found := c.feed(" \n", "sql", "-"); found.code != exitUsage || !strings.Contains(found.err, "no statement") {
		t.Errorf("nothing on standard input: %+v", found)
	}
	if found := c.feed(strings.Repeat("x", maxStatementBytes+1), "sql", "-"); found.code != exitUsage || !strings.Contains(found.err, "the limit") {
		t.Errorf("too much on standard input: %+v", found)
	}
}

// TestTraceShows reads an answer with every list.
func TestTraceShows(t *testing.T) {
	t.Parallel()
	c := answering(t, map[string]asked{audit.QuestionTrace: func(body []byte) any {
		q := questionOf[audit.TraceQuestion](t, body)
		if q.Of == "nothing" {
			return refusal{"404", "nothing is known of nothing", ""}
		}
		return audit.TraceAnswer{
			As: []string{audit.TracePackage}, Commits: []audit.TracedCommit{{Repository: "acme/shop", Commit: "abc", Author: &audit.Person{ID: "x", Name: "ann"}, Sequence: 1}},
			Builds:      []audit.TracedBuild{{ID: "b1", Module: "web", Failed: "a test", Sequence: 2}},
			Published:   []audit.TracedPublication{{Reference: packaged("web", "1.20"), Vetoed: true, Sequence: 3}},
			Assignments: []audit.Standing{standing("n1", "web", "1.20")}, More: true, CarriedCount: 2345, Next: "on" + q.Cursor,
			Carried: []audit.Carried{{Build: "b1", Module: "api", Version: "2"}, {Build: "b1", Repository: "acme/shop", Commit: "def"}},
		}
	}})
	found := c.ok("trace", "web@1.20", "--limit", "1", "--cursor", "there")
	for _, words := range []string{"commits\n", "builds\n", "published\n", "nodes\n", "came with it\n", "failed: a test", "vetoed", "ann", "api"} {
		if !strings.Contains(found.out, words) {
			t.Errorf("it shows\n%swant %q", found.out, words)
		}
	}
	if !strings.Contains(found.err, "traced as package") || !strings.Contains(found.err, "more commits and builds and published and nodes than the limit of 1:") || !strings.Contains(found.err, "2 of the 2,345 that came with it are shown; go on with the same question and --cursor onthere") {
		t.Errorf("it says\n%s", found.err)
	}
	if names := c.ok("trace", "web@1.20", "-o", "name").out; names != "abc\nb1\nweb@1.20\nn1/web\napi@2\ndef\n" {
		t.Errorf("the names are\n%s", names)
	}
	c.must(exitNotFound, "trace", "nothing")
	c.must(exitUsage, "trace", "x", "--as", "thing")
	c.must(exitUsage, "trace")
}

// TestExportWrites exports events in two pieces, from the middle on: each line has the hash of the event before it.
func TestExportWrites(t *testing.T) {
	t.Parallel()
	hash := func(n byte) string { return strings.Repeat(string([]byte{'0', '0' + n}), 32) }
	event := func(n uint64) audit.ExportedEvent {
		return audit.ExportedEvent{Item: audit.Item{Sequence: n, Recorded: noon()}, Subject: "evt.x", Stored: []byte("b"), Hash: hash(byte(n))}
	}
	fail := false
	c := answering(t, map[string]asked{
		audit.QuestionExport: func(body []byte) any {
			q := questionOf[audit.ExportQuestion](t, body)
			switch {
			case q.What == audit.ExportAssignments:
				return audit.ExportPage{Assignments: []audit.ExportedAssignment{{Shows: audit.ShowsTold, Standing: standing("n1", "web", "1.20")}}}
			case q.Cursor == "" && q.Since.Equal(noon()): // the search for the event before
				return audit.ExportPage{Events: []audit.ExportedEvent{event(3), event(4)}}
			case q.Cursor == "":
				return audit.ExportPage{Events: []audit.ExportedEvent{event(5)}, Next: "more"}
			case fail:
				return refusal{"500", "broken", ""}
			}
			return audit.ExportPage{Events: []audit.ExportedEvent{event(6)}}
		},
		audit.QuestionLog: func([]byte) any { return audit.LogPage{Items: []audit.Item{{Sequence: 4, Recorded: noon()}}} },
	})
	type written struct {
		Stored struct {
			Sequence       uint64
			Previous, Hash string
		}
	}
	found := c.ok("export", "events", "--since", "2026-08-01 13:00")
	lines := json.NewDecoder(strings.NewReader(found.out))
	for n := byte(5); n <= 6; n++ {
		var l written
		if err := lines.Decode(&l); err != nil || l.Stored.Sequence != uint64(n) || l.Stored.Hash != hash(n) || l.Stored.Previous != hash(n-1) {
			t.Errorf("line of event %d is %+v (%v)", n, l, err)
		}
	}
	if !strings.Contains(found.err, "2 events") {
		t.Errorf("it says %q", found.err)
	}
	path := filepath.Join(t.TempDir(), "out.csv")
	c.ok("export", "events", "--format", "csv", "-o", path)
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("the file says %q (%v)", text, err)
	}
	fail = true
	broken := filepath.Join(t.TempDir(), "broken.parquet")
	c.must(exitFailed, "export", "events", "--format", "parquet", "-o", broken)
	if entries, err := os.ReadDir(filepath.Dir(broken)); err != nil || len(entries) > 0 {
		t.Errorf("an export that failed left %v (%v)", entries, err)
	}
	if found := c.ok("export", "assignments", "--format", "csv").out; !strings.Contains(found, "told,n1,web,") {
		t.Errorf("the assignments are\n%s", found)
	}
	c.must(exitUsage, "export", "events", "--format", "xml")
	c.must(exitUsage, "export", "nodes")
}

// TestLogPages reads a log of events and refused commands, over two pages with a cursor of their own.
func TestLogPages(t *testing.T) {
	t.Parallel()
	c := answering(t, map[string]asked{audit.QuestionLog: func(body []byte) any {
		q := questionOf[audit.LogQuestion](t, body)
		switch {
		case q.Text == "events only" && q.Refused != "":
			return refusal{"501", "the projector keeps no audit store", ""}
		case q.Refused == audit.RefusedOnly:
			return audit.LogPage{Items: []audit.Item{{Refused: &audit.Refused{Command: "c1", Status: "rejected"}}}}
		case q.Refused == "":
			return audit.LogPage{Items: []audit.Item{{Sequence: 1, Aggregate: "node", Key: es.Key("n 1"), Type: "node.registered.v1"}}}
		case q.Cursor == "":
			return audit.LogPage{More: true, Cursor: "next", Items: []audit.Item{{Recorded: noon(), Refused: &audit.Refused{
				Command: "c1", Recorded: noon(), Aggregate: "module", Verb: "forget", Key: "web", Status: "rejected", Code: "module-stands", Message: "web stands\x1b[2J on n1",
			}}}}
		}
		return audit.LogPage{Items: []audit.Item{{Sequence: 7, Type: "assignment.assigned.v1", Aggregate: "assignment", Key: "n1.web", Recorded: noon(), Effective: noon(), Data: json.RawMessage(`{"reason":"why not"}`)}}}
	}})
	found := c.ok("log", "start", "page")
	for _, words := range []string{"refused: module forget", `module-stands: web stands\u001B[2J on n1`, "why not", "n1 web"} {
		if !strings.Contains(found.out, words) {
			t.Errorf("it shows\n%swant %q", found.out, words)
		}
	}
	if page := c.ok("log", "--limit", "1", "-o", "name"); page.out != "c1\n" || !strings.Contains(page.err, "--cursor next") {
		t.Errorf("the first page is %q and says %q", page.out, page.err)
	}
	if page := c.ok("log", "--limit", "1", "-o", "name", "--cursor", "next"); page.out != "7\n" || strings.Contains(page.err, "cursor") {
		t.Errorf("the second page is %q and says %q", page.out, page.err)
	}
	if found := c.ok("log", "--refused", "-o", "name").out; found != "c1\n" {
		t.Errorf("refused commands alone are %q", found)
	}
	if found := c.ok("log", "--events", "-o", "name").out; found != "1\n" {
		t.Errorf("events alone are %q", found)
	}
	without := c.ok("log", "events only")
	if !strings.Contains(without.err, "refused commands are not shown") || !strings.Contains(without.out, "node.registered.v1") {
		t.Errorf("without an audit store it says\n%s%s", without.out, without.err)
	}
	c.must(exitUsage, "log", "--refused", "--events")
	c.must(exitUsage, "log", "--follow", "--cursor", "next")
}

// TestBehind: an answer that leaves out what was recorded last is shown all the same, with how far it goes and why, and ends with a code of
// its own; one that is about what was known before is whole.
func TestBehind(t *testing.T) {
	t.Parallel()
	basis := audit.Basis{Through: 5, Tail: 9, Recorded: noon()}
	for name, test := range map[string]struct {
		state audit.StoreState
		says  []string
	}{
		"it is behind":   {audit.StoreState{Event: 6, Answers: true}, []string{"through event 5 of 9", "has come to event 6 of 9", "it catches up by itself"}},
		"it is built":    {audit.StoreState{Event: 2, Answers: true, Building: true}, []string{"is being built, and has come to event 2 of 9", "ask again"}},
		"it has stopped": {audit.StoreState{Event: 5, Answers: true, Stopped: "event 6 is of a newer program"}, []string{"has stopped at event 5 of 9: event 6 is of", "deal with the reason"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answering(t, map[string]asked{
				audit.QuestionPosition: func([]byte) any { return audit.Positions{Tail: 9, Audit: &test.state} },
				audit.QuestionAsOf: func(body []byte) any {
					return audit.AsOfAnswer{Shows: audit.ShowsTold, Moment: questionOf[audit.AsOfQuestion](t, body).Moment, Assignments: []audit.Standing{standing("n1", "web", "1")}, Basis: basis}
				},
				audit.QuestionDiff: func([]byte) any {
					return audit.DiffAnswer{Started: 1, Differences: []audit.Difference{{Kind: audit.DiffStarted, Node: "n1", Module: "web"}}, Basis: basis}
				},
				audit.QuestionTrace: func([]byte) any {
					return audit.TraceAnswer{Builds: []audit.TracedBuild{{ID: "b1"}}, Basis: basis}
				},
				audit.QuestionSQL: func([]byte) any { return audit.SQLAnswer{Columns: []string{"n"}, Rows: [][]any{{1}}, Basis: basis} },
				audit.QuestionLog: func([]byte) any {
					return audit.LogPage{Items: []audit.Item{{Sequence: 5, Type: "x.v1"}}, Through: 5, Tail: 9}
				},
			})
			for _, args := range [][]string{{"as-of", "now"}, {"diff", "yesterday", "now"}, {"trace", "b1"}, {"sql", "SELECT 1"}, {"log", "--limit", "1"}} {
				found := c.must(exitStale, args...)
				if strings.Count(found.out, "\n") == 0 {
					t.Errorf("%v shows nothing", args)
				}
				for _, say := range test.says {
					if !strings.Contains(found.err, say) {
						t.Errorf("%v says %q, want %q", args, found.err, say)
					}
				}
			}
			c.ok("as-of", "2026-07-01", "--known-at", "2026-07-02")
		})
	}
}

// TestNoStoreToAsk: that the audit store can't answer has an exit code of its own, and says which state it is in and what to do. The log
// shows the events all the same.
func TestNoStoreToAsk(t *testing.T) {
	t.Parallel()
	for name, no := range map[string]refusal{
		"is not there": {"501", "this projector keeps no audit store", "run a projector without --no-audit"},
		"is built":     {"425", "the audit store is being built, and has come to event 3 of 12", "ask again when it is built"},
		"has stopped":  {"424", "the audit store has stopped at event 3 of 12: broken", "deal with the reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answering(t, map[string]asked{
				audit.QuestionBlame: func([]byte) any { return no },
				audit.QuestionLog: func(body []byte) any {
					if q := questionOf[audit.LogQuestion](t, body); q.Refused != "" || q.Text != "" {
						return no
					}
					return audit.LogPage{Items: []audit.Item{{Sequence: 12, Type: "x.v1"}}}
				},
			})
			for _, args := range [][]string{{"blame", "n1", "web"}, {"log", "words"}, {"log", "--refused"}} {
				if found := c.must(exitNotYet, args...); !strings.Contains(found.err, no.message) || !strings.Contains(found.err, no.hint) {
					t.Errorf("%v says %q", args, found.err)
				}
			}
			want := exitStale
			if no.code == "501" {
				want = exitOK // it is so by choice
			}
			if found := c.must(want, "log", "-o", "name"); found.out != "12\n" || !strings.Contains(found.err, "refused commands are not shown") || !strings.Contains(found.err, "the audit store") && want == exitStale {
				t.Errorf("the log is %q, and says %q", found.out, found.err)
			}
		})
	}
}
