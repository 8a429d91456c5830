package deliveries

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"catenary/internal/ndjson"
	"catenary/internal/realdata"
)

// file is a source in a file of its own.
func file(t *testing.T, name string, content []byte) *ndjson.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ndjson.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// row is a deployment at so many seconds.
func row(second int, environment, app, version string) Row {
	return Row{At: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(second) * time.Second), Environment: environment, App: app, Kind: KindDeploy, New: &version}
}

// write gives a row as a line of a history.
func write(r Row) string {
	show := func(s *string) string {
		if s == nil {
			return "null"
		}
		return fmt.Sprintf("%q", *s)
	}
	return fmt.Sprintf(`{"t":%q,"env":%q,"app":%q,"kind":%q,"key":%q,"old":%s,"new":%s,"by":%q,"commit":%q}`,
		r.At.Format(time.RFC3339Nano), r.Environment, r.App, r.Kind, r.Policy, show(r.Old), show(r.New), r.By, r.Commit)
}

func removal(second int, environment, app string) Row {
	r := row(second, environment, app, "")
	r.Kind, r.New = KindRemove, nil
	return r
}

func input(t *testing.T, rows ...Row) Input {
	t.Helper()
	var lines []string
	for _, r := range rows {
		lines = append(lines, write(r))
	}
	return Input{Source: file(t, "history", []byte(strings.Join(lines, "\n")))}
}

func examine(t *testing.T, in Input) (Plan, []Problem) {
	t.Helper()
	var problems []Problem
	p, err := Examine(in, false, func(p Problem) { problems = append(problems, p) })
	if err != nil {
		t.Fatal(err)
	}
	return p, problems
}

func TestExamine(t *testing.T) {
	t.Parallel()
	state, err := ReadState(strings.NewReader(`{"live":{"shop":"1","pay":"7"}}`), row(0, "", "", "").At)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join([]string{
		write(row(10, "live", "shop", "2")),
		`{"t":"2026-05-01T00:00:11Z"}`,
		``,
		write(Row{At: row(12, "", "", "").At, Environment: "live", App: "shop", Kind: KindPolicy, Policy: PolicyPromote, New: ptr("perhaps")}),
		write(Row{At: row(13, "", "", "").At, Environment: "live", App: "shop", Kind: KindPolicy, Policy: PolicyPromote, New: ptr("false")}),
		write(removal(14, "live", "pay")),
		write(row(15, "test", "pay\u00a0", "8")),
		write(row(16, "test", "pay", "8")),
	}, "\n")
	in := Input{Name: "mine", Source: file(t, "history", []byte(text)), State: &state}
	got, problems := examine(t, in)
	want := Plan{
		Source: "mine", Rows: 7, Pairs: 2, Broken: 2, Unclear: 1, Nodes: 2, Modules: 2, Begins: 3, Ends: 1,
		Commands: map[string]int{"node register": 2, "module register": 2, "assignment assign": 4, "assignment unassign": 1, "freeze declare": 1},
		From:     state.At, To: row(16, "", "", "").At,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Plan{})); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%d %s", p.Line, p.Kind))
	}
	if diff := cmp.Diff([]string{"2 broken", "4 unclear", "7 broken"}, lines); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if _, err := Examine(in, true, func(Problem) {}); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("strict gave %v, want the broken line 2", err)
	}
}

// TestConfirm is case E21 for imports.
func TestConfirm(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		rows      []Row
		confirmed *int
		refused   string
	}{
		{name: "nothing at all"},
		{name: "as many begin as end", rows: []Row{row(1, "e", "a", "1"), removal(2, "e", "a")}},
		{name: "what is not in the input may stand", rows: []Row{removal(1, "e", "a")}, refused: "would end 1"},
		{name: "more end than begin", rows: []Row{row(1, "e", "a", "1"), removal(2, "e", "a"), removal(3, "e", "b")}, refused: "would end 2 assignments and begin 1: confirm that it ends exactly 2"},
		{name: "confirmed", rows: []Row{removal(1, "e", "a"), removal(2, "e", "b")}, confirmed: ptr(2)},
		{name: "confirmed wrongly", rows: []Row{removal(1, "e", "a"), removal(2, "e", "b")}, confirmed: ptr(1), refused: "2 assignments, not 1"},
		{name: "confirmed wrongly without need", rows: []Row{row(1, "e", "a", "1")}, confirmed: ptr(1), refused: "0 assignments, not 1"},
		{name: "ended twice counts once", rows: []Row{row(1, "e", "a", "1"), removal(2, "e", "a"), removal(3, "e", "a")}},
		{name: "version changes begin nothing", rows: []Row{row(1, "e", "a", "1"), row(2, "e", "a", "2"), removal(3, "e", "a"), removal(4, "e", "b")}, refused: "would end 2 assignments and begin 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, _ := examine(t, input(t, c.rows...))
			err := p.Confirm(c.confirmed)
			if c.refused == "" && err != nil || c.refused != "" && (!errors.Is(err, ErrConfirm) || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("got %v, want %q", err, c.refused)
			}
		})
	}
}

// TestStepsDependOnWhatStandsBefore: a history that grew at its end gives all the steps it gave before.
func TestStepsDependOnWhatStandsBefore(t *testing.T) {
	t.Parallel()
	rows := []Row{row(1, "e", "a", "1"), row(1, "e", "a", "1"), row(2, "e", "b", "1"), removal(3, "e", "a"), removal(3, "e", "a")}
	ids := func(in Input) (all []string) {
		err := in.walk(func(p Problem) error { return errors.Newf("%+v", p) }, func(s step) error {
			all = append(all, s.options.ID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	whole := ids(input(t, rows...))
	seen := map[string]bool{}
	for _, id := range whole {
		if seen[id] {
			t.Errorf("id %s is used twice", id)
		}
		seen[id] = true
	}
	for n := range rows {
		if part := ids(input(t, rows[:n]...)); !cmp.Equal(part, whole[:len(part)], cmpopts.EquateEmpty()) {
			t.Errorf("the first %d rows alone give other ids", n)
		}
	}
}

func TestRealHistories(t *testing.T) {
	t.Parallel()
	dir := realdata.Dir(t)
	for name, want := range map[string]struct {
		rows, ends, modules, nodes int
	}{
		"deliveries-2026-05-07.ndjson.gz":     {rows: 7850, modules: 54, nodes: 3},
		"full-2024-01_2026-07-slim.ndjson.gz": {rows: 96271, modules: 78, nodes: 4, ends: 53},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := ndjson.Open(dir+"/govuk/"+name, nil)
			if err != nil {
				t.Fatal(err)
			}
			p, problems := examine(t, Input{Source: s})
			if len(problems) > 0 {
				t.Errorf("problems: %+v", problems)
			}
			if p.Rows != want.rows || p.Modules != want.modules || p.Nodes != want.nodes || p.Ends != want.ends || p.Confirm(nil) != nil {
				t.Errorf("got %+v, want %+v", p, want)
			}
		})
	}
}

func BenchmarkExamine(b *testing.B) {
	s, err := ndjson.Open(realdata.Dir(b)+"/govuk/full-2024-01_2026-07-slim.ndjson.gz", nil)
	if err != nil {
		b.Fatal(err)
	}
	rows := 0
	for b.Loop() {
		p, err := Examine(Input{Source: s}, true, func(Problem) {})
		if err != nil {
			b.Fatal(err)
		}
		rows += p.Rows
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
