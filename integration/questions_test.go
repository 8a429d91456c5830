package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"catenary/audit"
	"catenary/es"
	"catenary/internal/lineage"
	"catenary/internal/realdata"
)

// pastQuestion is one of the questions whose answers were read from git.
type pastQuestion struct{ Env, App, T, Answer string }

// askPast asks the main set what stood at moments of its past, by every command that answers that.
func askPast(c tool, questions []pastQuestion) {
	c.t.Helper()
	inParallel(questions, func(q pastQuestion) {
		stood := read[audit.AsOfAnswer](c, "as-of", q.T, "--node", q.Env, "--module", q.App)
		if len(stood.Assignments) != 1 || stood.Shows != audit.ShowsTold || stood.Assignments[0].Package.Version != q.Answer {
			c.t.Errorf("%s in %s at %s: as-of says %+v, want %s", q.App, q.Env, q.T, stood, q.Answer)
		}
		blamed := read[audit.BlameAnswer](c, "blame", q.Env, q.App, "--as-of", q.T)
		if !blamed.Stands || blamed.Now == nil || blamed.Now.Package.Version != q.Answer || blamed.Change.Actor.Name != "operator" || blamed.Change.Command == "" || blamed.Change.Reason == "" {
			c.t.Errorf("%s in %s at %s: blame says %+v, want %s", q.App, q.Env, q.T, blamed, q.Answer)
		}
	})
}

// askWholeState asks what stood everywhere after the last row, by days and by words.
func askWholeState(c tool, want map[pair]string) {
	c.t.Helper()
	for _, args := range [][]string{{"2026-08-01", "--zone", "UTC"}, {"2026-08-01 02:00 Europe/Berlin"}, {"now"}} {
		got := map[pair]string{}
		for _, a := range read[audit.AsOfAnswer](c, append([]string{"as-of"}, args...)...).Assignments {
			got[pair{a.Node, a.Module}] = a.Package.Version
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(pair{})); diff != "" {
			c.t.Errorf("as of %v (-want +got):\n%s", args, diff)
		}
	}
	// Nothing of it was known at the time: it was all recorded now.
	if known := read[audit.AsOfAnswer](c, "as-of", "2026-08-01", "--known-at", "2026-08-02"); len(known.Assignments) != 0 {
		c.t.Errorf("%d assignments were known before they were recorded", len(known.Assignments))
	}
}

// aggregates are totals that were counted from the rows.
type aggregates struct {
	DeploysByEnv   map[string]int `json:"deploys_by_env"`
	TopApps        [][2]any       `json:"top_apps"`
	RollbacksByEnv map[string]int `json:"numeric_rollbacks_by_env"`
	Drift          int            `json:"drift_at_end"`
	DriftIntProd   int            `json:"drift_int_vs_prod"`
}

// askReports asks for totals over the main set.
func askReports(c tool, want aggregates) {
	c.t.Helper()
	// What stood before the first row is no delivery of these months.
	rows := []string{"--since", "2026-05-01T00:00:01Z"}
	deploys := map[string]int{}
	for _, d := range read[audit.ReportAnswer](c, append([]string{"report", "deliveries"}, rows...)...).Deliveries {
		deploys[d.Of] = d.Started + d.Changed
	}
	if diff := cmp.Diff(want.DeploysByEnv, deploys); diff != "" {
		c.t.Errorf("deliveries by node (-want +got):\n%s", diff)
	}
	byModule := map[string]int{}
	for _, d := range read[audit.ReportAnswer](c, append([]string{"report", "deliveries", "--by", "module"}, rows...)...).Deliveries {
		byModule[d.Of] = d.Started + d.Changed
	}
	for _, top := range want.TopApps {
		if app, n := top[0].(string), int(top[1].(float64)); byModule[app] != n {
			c.t.Errorf("%d deliveries of %s, want %d", byModule[app], app, n)
		}
	}
	weeks, inWeeks := read[audit.ReportAnswer](c, append([]string{"report", "deliveries", "--by", "week"}, rows...)...).Deliveries, 0
	for _, w := range weeks {
		inWeeks += w.Started + w.Changed
	}
	if const92Days := 14; len(weeks) != const92Days || inWeeks != 7422 {
		c.t.Errorf("%d deliveries in %d weeks, want 7422 in %d", inWeeks, len(weeks), const92Days)
	}
	rollbacks := map[string]int{}
	for _, r := range read[audit.ReportAnswer](c, append([]string{"report", "rollbacks"}, rows...)...).Rollbacks {
		rollbacks[r.Of] = r.Lower
	}
	if diff := cmp.Diff(want.RollbacksByEnv, rollbacks); diff != "" {
		c.t.Errorf("rollbacks by node (-want +got):\n%s", diff)
	}
	drift := map[string]int{}
	for _, d := range read[audit.ReportAnswer](c, "report", "drift", "--as-of", "2026-08-01").Drift {
		if !d.Observed {
			drift[d.From+" "+d.To], drift[d.To+" "+d.From] = len(d.Modules), len(d.Modules)
		}
	}
	for nodes, n := range map[string]int{"staging production": want.Drift, "integration production": want.DriftIntProd} {
		if drift[nodes] != n {
			c.t.Errorf("%s drift by %d, want %d", nodes, drift[nodes], n)
		}
		from, to, _ := strings.Cut(nodes, " ")
		differ := c.must(1, "diff", from, to, "-o", "json")
		var answer audit.DiffAnswer
		if err := json.Unmarshal([]byte(differ.out), &answer); err != nil || answer.Changed != n {
			c.t.Errorf("diff %s finds %d changed (%v), want %d", nodes, answer.Changed, err, n)
		}
	}
	c.must(0, "diff", "production", "production")
	c.must(0, "diff", "2026-08-01", "now")
	c.must(1, "diff", "2026-05-01T00:00:00Z", "now")
	c.must(11, "diff", "production", "no such node")
}

// TestLineage imports the real repositories that are small, and traces each of their versions: what came with it is what the files
// say.
func TestLineage(t *testing.T) {
	t.Parallel()
	from, dir := filepath.Join(realdata.Dir(t), "lineage"), t.TempDir()
	for _, name := range []string{"orbit.go-commits", "orbit.go-releases", "sdk-go-commits", "sdk-go-releases"} {
		if err := os.Symlink(filepath.Join(from, name+".ndjson.gz"), filepath.Join(dir, name+".ndjson.gz")); err != nil {
			t.Fatal(err)
		}
	}
	c := on(t, shared)
	type outcome struct {
		lineage.Summary
		Problems []json.RawMessage
	}
	first := read[outcome](c, "import", "lineage", dir)
	if first.Commits != 940 || first.Releases != 291 || !first.Whole() || first.Accepted != first.Commands || len(first.Problems) > 0 {
		t.Errorf("the import: %+v", first)
	}
	if again := read[outcome](c, "import", "lineage", dir); again.Repeated != first.Commands || again.Accepted != 0 {
		t.Errorf("the same import again: %+v", again)
	}
	queries := audit.NewClient(connect(t, shared.url), nil)
	for _, repository := range []string{"orbit.go", "sdk-go"} {
		releases := readLines[struct{ Module, Version, Commit string }](t, filepath.Join(from, repository+"-releases.ndjson.gz"))
		together := map[string]int{}
		for _, r := range releases {
			together[r.Commit]++
		}
		touching := map[string][]string{} // by module, in order
		for _, row := range readLines[struct {
			Commit  string
			Modules []string
		}](t, filepath.Join(from, repository+"-commits.ndjson.gz")) {
			for _, m := range row.Modules {
				touching[m] = append(touching[m], row.Commit)
			}
		}
		for _, r := range releases {
			name := strings.TrimSuffix(repository+"/"+r.Module, "/.") + "@" + r.Version
			found, err := queries.Trace(t.Context(), audit.TraceQuestion{Of: name})
			if err != nil {
				t.Fatal(err)
			}
			modules, commits := 0, []string{}
			for _, carried := range found.Carried {
				if carried.Version != "" {
					modules++
				} else {
					commits = append(commits, carried.Commit)
				}
			}
			// Each commit came with one version: with each the next of them.
			next := slices.Sorted(slices.Values(touching[r.Module][:min(len(commits), len(touching[r.Module]))]))
			if slices.Sort(commits); !slices.Equal(next, commits) {
				t.Errorf("with %s came the commits %v, and the next are %v", name, commits, next)
			}
			touching[r.Module] = touching[r.Module][len(next):]
			if modules != together[r.Commit] || len(found.Builds) != 1 || found.Builds[0].Commit != r.Commit || len(found.Published) != 1 {
				t.Errorf("%s came with %d modules, want %d:\n%+v", name, modules, together[r.Commit], found)
			}
		}
	}
	table := c.must(0, "trace", "orbit.go/natsext@v0.1.0").out
	for _, words := range []string{"came with it", "orbit.go/natsext", "release/orbit.go/natsext/v0.1.0", "c88e755e8cff"} {
		if !strings.Contains(table, words) {
			t.Errorf("the trace shows\n%swant %q", table, words)
		}
	}
}

// TestExport writes what the shared chain holds in each format, and reads it back.
func TestExport(t *testing.T) {
	t.Parallel()
	c, dir := on(t, shared), t.TempDir()
	c.node("export-1")
	c.module("export-1")
	c.must(0, "assign", "export-1", "export-1", "--package", "p@1.20")
	lines := filepath.Join(dir, "events.ndjson")
	c.must(0, "export", "events", "-o", lines)
	type line struct {
		Sequence uint64
		Stored   struct {
			Sequence       uint64
			Subject        string
			Headers        map[string][]string
			Body           []byte
			Previous, Hash es.Hash
		}
	}
	// Whoever has the lines can check the chain.
	var head es.Head
	for _, l := range readLines[line](t, lines) {
		m := es.Message{Sequence: l.Stored.Sequence, Subject: l.Stored.Subject, Header: l.Stored.Headers, Body: l.Stored.Body}
		m.Header[es.HeaderHash] = []string{l.Stored.Hash.String()}
		next, err := head.Verify(m)
		if err != nil || l.Stored.Previous != head.Hash || l.Sequence != next.Sequence {
			t.Fatalf("the line of event %d does not follow event %d: %v", l.Sequence, head.Sequence, err)
		}
		head = next
	}
	if last := read[[]audit.Item](c, "log", "--limit", "1", "--events"); head.Sequence == 0 || last[0].Sequence < head.Sequence {
		t.Errorf("the export ends with event %d, and the last is %+v", head.Sequence, last)
	}
	file := filepath.Join(dir, "assignments.parquet")
	c.must(0, "export", "assignments", "--format", "parquet", "-o", file)
	type row struct {
		Node           string `parquet:"node"`
		PackageVersion string `parquet:"package_version"`
	}
	rows, err := parquet.ReadFile[row](file)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range rows {
		found = found || r == row{"export-1", "1.20"}
	}
	if !found {
		t.Errorf("the Parquet file has %d rows, and none of the assignment", len(rows))
	}
	if text := c.must(0, "export", "assignments", "--format", "csv").out; !strings.Contains(text, ",export-1,export-1,true,") {
		t.Errorf("the CSV has no row of the assignment:\n%.500s", text)
	}
}
