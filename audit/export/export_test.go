package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"catenary/audit"
	"catenary/es"
	"catenary/events"
)

// sample is an event with all there can be, and one that can't be read.
func sample(t *testing.T) []Event {
	t.Helper()
	previous, err := es.ParseHash(strings.Repeat("0a", 32))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 8, 1, 16, 0, 0, 123456789, time.UTC)
	return []Event{
		{ExportedEvent: audit.ExportedEvent{
			Item: audit.Item{
				Sequence: 7, ID: "e7", Type: "assignment.assigned.v1", Aggregate: "assignment", Key: "n1.web", Version: 2, Recorded: at, Effective: at.Add(-time.Hour), Backfill: true,
				Command: "c7", Actor: "operator", OnBehalfOf: "id-1", Causation: "c6", Correlation: "x", Data: json.RawMessage(`{"reason":"<a>, \"b\"\nand 1.20","n":1e5}`),
			},
			Subject: "evt.assignment.n1=2Eweb", Header: map[string][]string{"ce-id": {"e7"}, "Cat-Hash": {"ff"}, "Cat-Version": {"2"}},
			Stored: []byte{0x81, 0, 0xff}, Hash: strings.Repeat("ff", 32),
		}, Previous: previous},
		{ExportedEvent: audit.ExportedEvent{
			Item:    audit.Item{Sequence: 8, Aggregate: "x", Key: "節点", Body: []byte("?"), Problem: "unknown"},
			Subject: "evt.x.y", Stored: []byte("?"), Hash: strings.Repeat("ee", 32),
		}},
	}
}

func written[T any](t *testing.T, make func(*bytes.Buffer) (Writer[T], error), batches ...[]T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := make(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range batches {
		if err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func eventsAs(f Format) func(*bytes.Buffer) (Writer[Event], error) {
	return func(b *bytes.Buffer) (Writer[Event], error) { return Events(b, f) }
}

// TestEventLines pins the form of a line: whoever checks an export without us relies on it.
func TestEventLines(t *testing.T) {
	t.Parallel()
	all := sample(t)
	want := `{"sequence":7,"id":"e7","type":"assignment.assigned.v1","aggregate":"assignment","key":"n1.web","version":2,"recorded":"2026-08-01T16:00:00.123456789Z","effective":"2026-08-01T15:00:00.123456789Z","backfill":true,"command":"c7","actor":"operator","on-behalf-of":"id-1","causation":"c6","correlation":"x","data":{"reason":"<a>, \"b\"\nand 1.20","n":1e5},` +
		`"stored":{"sequence":7,"subject":"evt.assignment.n1=2Eweb","headers":{"Cat-Version":["2"],"ce-id":["e7"]},"body":"gQD/","previous":"` + strings.Repeat("0a", 32) + `","hash":"` + strings.Repeat("ff", 32) + "\"}}\n" +
		`{"sequence":8,"aggregate":"x","key":"節点","body":"Pw==","problem":"unknown","stored":{"sequence":8,"subject":"evt.x.y","headers":{},"body":"Pw==","previous":"` + strings.Repeat("00", 32) + `","hash":"` + strings.Repeat("ee", 32) + "\"}}\n"
	if diff := cmp.Diff(want, string(written(t, eventsAs(NDJSON), all[:1], nil, all[1:]))); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestEventColumns reads events back from CSV and from Parquet: both say the same, under the same names.
func TestEventColumns(t *testing.T) {
	t.Parallel()
	all := sample(t)
	records, err := csv.NewReader(bytes.NewReader(written(t, eventsAs(CSV), all))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sequence", "id", "type", "aggregate", "key", "version", "recorded", "effective", "backfill", "command", "actor", "on_behalf_of", "causation", "correlation",
		"data", "problem", "subject", "headers", "body", "previous", "hash",
	}
	if diff := cmp.Diff(want, records[0]); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	file := written(t, eventsAs(Parquet), all[:1], all[1:])
	rows, err := parquet.Read[eventRow](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		if diff := cmp.Diff(e.row(), rows[i]); diff != "" {
			t.Errorf("row %d of the Parquet file (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(rows[i].cells(), records[i+1]); diff != "" {
			t.Errorf("record %d of the CSV file (-Parquet +CSV):\n%s", i, diff)
		}
	}
	if rows[0].Data != string(all[0].Data) || !rows[0].Recorded.Equal(all[0].Recorded) || rows[1].Recorded != nil || records[1][6] != "2026-08-01T16:00:00.123456789Z" {
		t.Errorf("the first row is %+v", rows[0])
	}
}

// TestAssignments writes what was said of an assignment in each format.
func TestAssignments(t *testing.T) {
	t.Parallel()
	at, healthy := time.Date(2026, 8, 1, 16, 0, 0, 0, time.UTC), false
	all := []audit.ExportedAssignment{
		{
			Shows: audit.ShowsTold, Stands: true, From: at, Type: "assignment.assigned.v1", Actor: "operator", Reason: "why, then", Backfill: true,
			Standing: audit.Standing{
				Node: "n.1", Module: "web", Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1.20"}}, Commit: "c", RequiredBy: []string{"a", "b"},
				Assigned: at, Since: at, Until: at.Add(time.Hour), Sequence: 9, Known: at,
			},
		},
		{Shows: audit.ShowsObserved, Standing: audit.Standing{Node: "n", Module: "m", Reference: events.Reference{Artifact: "sha256:ab"}, Healthy: &healthy, Drift: "edited", Reported: at}},
	}
	as := func(f Format) func(*bytes.Buffer) (Writer[audit.ExportedAssignment], error) {
		return func(b *bytes.Buffer) (Writer[audit.ExportedAssignment], error) { return Assignments(b, f) }
	}
	lines := json.NewDecoder(bytes.NewReader(written(t, as(NDJSON), all)))
	for i := range all {
		var got audit.ExportedAssignment
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[i], got); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
	file := written(t, as(Parquet), all)
	rows, err := parquet.Read[assignmentRow](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(bytes.NewReader(written(t, as(CSV), all))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range all {
		if diff := cmp.Diff(rowOfAssignment(a), rows[i]); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(rows[i].cells(), records[i+1]); diff != "" {
			t.Errorf("record %d (-Parquet +CSV):\n%s", i, diff)
		}
	}
	if got := strings.Join(records[1], "|"); got != "told|n.1|web|true|2026-08-01T16:00:00Z|2026-08-01T17:00:00Z|web|1.20|||c||a,b|2026-08-01T16:00:00Z|2026-08-01T16:00:00Z|9|2026-08-01T16:00:00Z|assignment.assigned.v1|operator||why, then|true|||" {
		t.Errorf("the first record is %s", got)
	}
	if len(records[0]) != len(records[1]) {
		t.Errorf("%d columns have names, and there are %d", len(records[0]), len(records[1]))
	}
}

// TestNothing writes exports without a row: each is a file of its format.
func TestNothing(t *testing.T) {
	t.Parallel()
	if got := written(t, eventsAs(NDJSON)); len(got) != 0 {
		t.Errorf("lines of nothing: %q", got)
	}
	if got := written(t, eventsAs(CSV)); !bytes.HasPrefix(got, []byte("sequence,id,")) || bytes.Count(got, []byte("\n")) != 1 {
		t.Errorf("records of nothing: %q", got)
	}
	file := written(t, eventsAs(Parquet))
	if rows, err := parquet.Read[eventRow](bytes.NewReader(file), int64(len(file))); err != nil || len(rows) != 0 {
		t.Errorf("rows of nothing: %v, %v", rows, err)
	}
	if _, err := Events(nil, "xml"); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "ndjson, csv, parquet") {
		t.Errorf("a format that is none gave %v", err)
	}
}

// TestManyRows writes more rows than a group holds.
func TestManyRows(t *testing.T) {
	t.Parallel()
	const rows = 2*groupRows + 1
	batch := make([]audit.ExportedAssignment, rows)
	for i := range batch {
		batch[i].Node, batch[i].Module, batch[i].Sequence = "n", "m"+strconv.Itoa(i), uint64(i)
	}
	file := written(t, func(b *bytes.Buffer) (Writer[audit.ExportedAssignment], error) { return Assignments(b, Parquet) }, batch[:5], batch[5:])
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if f.NumRows() != rows || len(f.RowGroups()) != 3 {
		t.Errorf("%d rows in %d groups, want %d in 3", f.NumRows(), len(f.RowGroups()), rows)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "out.csv")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	say := func(end func(*File) error) string {
		t.Helper()
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("new"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) == "new" {
			t.Errorf("before it is ended the file says %q (%v)", got, err)
		}
		if err := errors.CombineErrors(end(f), f.Discard()); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("the folder has %v (%v), want the file alone", entries, err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	if got := say((*File).Discard); got != "old" {
		t.Errorf("discarded, the file says %q", got)
	}
	if got := say((*File).Commit); got != "new" {
		t.Errorf("committed, the file says %q", got)
	}
	if _, err := Create(filepath.Join(dir, "none", "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
}
