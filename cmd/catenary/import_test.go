package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/internal/deliveries"
)

// delivery is a row of a history. The app is the environment's only one unless it is named.
func delivery(minute int, environment, kind, version string) string {
	if version != "null" {
		version = fmt.Sprintf("%q", version)
	}
	return fmt.Sprintf(`{"t":"2026-05-01T07:%02d:00Z","env":%q,"app":"shop","kind":%q,"new":%s,"by":"ann","commit":"c%d"}`, minute, environment, kind, version, minute)
}

// historyFile writes rows into a file of a name that no other test uses.
func historyFile(t *testing.T, rows ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), strings.ReplaceAll(t.Name(), "/", "-")+".ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// outcome reads what an import printed.
func outcome(t *testing.T, c called) importReport {
	t.Helper()
	var r importReport
	if err := json.Unmarshal([]byte(c.out), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, c.out, c.err)
	}
	return r
}

func TestImport(t *testing.T) {
	t.Parallel()
	c := on(t)
	path := historyFile(t, delivery(1, "import-1", "add", "1.20"), delivery(2, "import-1", "deploy", "1.21"), delivery(3, "import-1", "remove", "null"), delivery(4, "import-1", "add", "1.20"))
	first := outcome(t, c.must(exitOK, "import", "deliveries", path, "-o", "json"))
	if first.Accepted != 4 || first.Rows != 4 || first.Sequence == 0 || first.Problems == nil {
		t.Errorf("the first import: %+v, want 4 accepted", first)
	}
	again := c.must(exitOK, "import", "deliveries", path, "-o", "json")
	if second := outcome(t, again); second.Repeated != 4 || second.Fresh() || !strings.Contains(again.err, "nothing has changed") {
		t.Errorf("the second import: %+v, want 4 repeated\n%s", second, again.err)
	}
	type change struct {
		Effective string           `json:"effective"`
		For       string           `json:"on-behalf-of"`
		Value     chain.Assignment `json:"value"`
	}
	var found []string
	for _, h := range read[[]change](c, "history", "assignment", "import-1", "shop") {
		found = append(found, fmt.Sprintf("%s %s %s %t", h.Effective, h.For, h.Value.Package.Version, h.Value.Stands()))
	}
	want := []string{"2026-05-01T07:01:00Z ann 1.20 true", "2026-05-01T07:02:00Z ann 1.21 true", "2026-05-01T07:03:00Z ann 1.21 false", "2026-05-01T07:04:00Z ann 1.20 true"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("history (-want +found):\n%s", diff)
	}
	if node := read[chain.Node](c, "get", "node", "import-1"); node.ManagedBy != "external" {
		t.Errorf("the node is %+v, want it external", node)
	}
}

func TestImportReportsProblems(t *testing.T) {
	t.Parallel()
	c := on(t)
	rows := []string{
		delivery(2, "import-2", "add", "1"), "no row", delivery(1, "import-2", "deploy", "late"),
		`{"t":"2026-05-01T07:03:00Z","env":"import-2","app":"shop","kind":"policy","key":"promote_deployment","new":"maybe"}`, delivery(4, "import-2", "deploy", "2"),
	}
	path := historyFile(t, rows...)
	strict := c.must(exitFailed, "import", "deliveries", path, "--strict")
	if !strings.Contains(strict.err, "line 2") {
		t.Errorf("strict: %s, want it to name line 2", strict.err)
	}
	c.must(exitNotFound, "get", "node", "import-2")
	r := outcome(t, c.must(exitFailed, "import", "deliveries", path, "-o", "json"))
	var found []string
	for _, p := range r.Problems {
		found = append(found, fmt.Sprintf("%d %s %s", p.Line, p.Kind, p.Code))
	}
	if diff := cmp.Diff([]string{"2 broken ", "4 unclear ", "3 refused effective-behind"}, found); diff != "" {
		t.Errorf("problems (-want +found):\n%s", diff)
	}
	if r.Accepted != 2 || r.Refused != 1 || r.Broken != 1 || r.Unclear != 1 {
		t.Errorf("the import: %+v", r)
	}
}

// TestImportSaysWhyNothingChanged: only what was taken was there before.
func TestImportSaysWhyNothingChanged(t *testing.T) {
	t.Parallel()
	c := on(t)
	row := delivery(1, "import-7", "add", "1")
	c.must(exitOK, "import", "deliveries", historyFile(t, row))
	for _, call := range []struct {
		history string
		code    int
		want    string
	}{
		{row, exitOK, "nothing has changed: all of it was there before\n"},
		{"", exitOK, "nothing has changed: there is no row in it\n"},
		{"no row", exitFailed, "nothing has changed\n"},
		{row + "\nno row", exitFailed, "nothing has changed\n"},
		{delivery(0, "import-7", "add", "0"), exitFailed, "nothing has changed\n"},
	} {
		found := c.feed(call.history, "import", "deliveries", "-", "--source", t.Name()+".ndjson")
		if found.code != call.code || !strings.Contains(found.err, call.want) {
			t.Errorf("of %q it says, with exit code %d,\n%swant %d and %q", call.history, found.code, found.err, call.code, call.want)
		}
	}
}

// TestImportConfirms is case E21 for imports.
func TestImportConfirms(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.must(exitOK, "import", "deliveries", historyFile(t, delivery(1, "import-3", "add", "1")))
	end := historyFile(t, delivery(2, "import-3", "remove", "null"))
	refused := c.must(exitRefused, "import", "deliveries", end)
	if !strings.Contains(refused.err, "--confirm-ended 1") {
		t.Errorf("it is refused with %s, want the number to confirm", refused.err)
	}
	c.must(exitRefused, "import", "deliveries", end, "--confirm-ended", "2")
	if found := read[chain.Assignment](c, "get", "assignment", "import-3", "shop"); !found.Stands() {
		t.Errorf("the assignment is %+v, want it to stand until the end is confirmed", found)
	}
	c.must(exitOK, "import", "deliveries", end, "--confirm-ended", "1")
	if found := read[chain.Assignment](c, "get", "assignment", "import-3", "shop"); found.Stands() {
		t.Errorf("the assignment is %+v, want it ended", found)
	}
}

func TestImportDryRun(t *testing.T) {
	t.Parallel()
	path := historyFile(t, delivery(1, "import-4", "add", "1"), delivery(2, "import-4", "deploy", "2"))
	nowhere := caller{t: t, url: "nats://127.0.0.1:1"}
	var plan deliveries.Plan
	dry := nowhere.must(exitOK, "import", "deliveries", path, "--dry-run", "-o", "json")
	if err := json.Unmarshal([]byte(dry.out), &plan); err != nil || plan.Rows != 2 || plan.Commands["assignment assign"] != 2 {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	nowhere.must(exitFailed, "import", "deliveries", historyFile(t, "no row"), "--dry-run")
	nowhere.must(exitUnreachable, "import", "deliveries", path)
	nowhere.must(exitFailed, "import", "deliveries", filepath.Join(t.TempDir(), "none"))
	for _, args := range []string{"import", "import deliveries", "import deliveries a b", "import deliveries " + path + " --state x", "import deliveries " + path + " --state-time 2026-05-01", "import deliveries " + path + " --in-flight 0"} {
		nowhere.must(exitUsage, strings.Fields(args)...)
	}
}

func TestImportState(t *testing.T) {
	t.Parallel()
	c := on(t)
	state := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(state, []byte(`{"import-5":{"shop":"1","pay":"7"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	path := historyFile(t, delivery(2, "import-5", "deploy", "2"))
	r := outcome(t, c.must(exitOK, "import", "deliveries", path, "--state", state, "--state-time", "2026-05-01T00:00:00Z", "-o", "json"))
	if r.Pairs != 2 || r.Accepted != 3 {
		t.Errorf("the import: %+v, want 2 pairs and 3 accepted", r)
	}
	for at, want := range map[string]string{"2026-05-01T07:01:59Z": "1", "2026-05-01T07:02:00Z": "2"} {
		if found := read[chain.Assignment](c, "get", "assignment", "import-5", "shop", "--as-of", at); found.Package.Version != want {
			t.Errorf("as of %s it is %+v, want version %s", at, found, want)
		}
	}
}

// TestImportKeepsVersions is case D10 by file: versions are text.
func TestImportKeepsVersions(t *testing.T) {
	t.Parallel()
	c := on(t)
	versions := []string{"4651090", "1.20", "0362525", "1e5", "true", "null", "012", "NaN"}
	var rows []string
	for i, v := range versions {
		rows = append(rows, strings.Replace(delivery(i, "import-6", "deploy", "VERSION"), "VERSION", v, 1))
	}
	r := outcome(t, c.feed(strings.Join(rows, "\r\n"), "import", "deliveries", "-", "--source", t.Name(), "-o", "json"))
	if r.Source != t.Name() || r.Accepted != len(versions) {
		t.Errorf("the import: %+v", r)
	}
	var found []string
	for _, h := range read[[]struct{ Value chain.Assignment }](c, "history", "assignment", "import-6", "shop") {
		found = append(found, h.Value.Package.Version)
	}
	if diff := cmp.Diff(versions, found); diff != "" {
		t.Errorf("versions (-want +found):\n%s", diff)
	}
}
