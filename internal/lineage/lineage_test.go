package lineage

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/realdata"
)

// folder writes files into a folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, path string) []Repository {
	t.Helper()
	found, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// writer answers as a writer does that accepts everything once, but for what it is told to answer.
type writer struct {
	seen    map[string]bool
	sent    []commands.Sending
	answers map[string]es.Answer
	fails   map[string]error
}

// SendMany answers one command after another.
func (w *writer) SendMany(_ context.Context, list iter.Seq[commands.Sending], _ int) iter.Seq[commands.Outcome] {
	return func(yield func(commands.Outcome) bool) {
		index := 0
		for s := range list {
			key := s.Payload.Ref().Aggregate + " " + s.Payload.Verb()
			o := commands.Outcome{Index: index, Sending: s, Answer: es.Answer{Status: es.StatusAccepted, Sequence: uint64(len(w.sent) + 1), Repeated: w.seen[s.Options.ID]}}
			if a, ok := w.answers[key]; ok {
				o.Answer = a
			}
			o.Err = w.fails[key]
			w.seen[s.Options.ID] = true
			w.sent = append(w.sent, s)
			if !yield(o) {
				return
			}
			index++
		}
	}
}

func newWriter() *writer { return &writer{seen: map[string]bool{}} }

// sample has two modules, a release branch, and versions that were released together.
func sample(t *testing.T) string {
	return folder(t, map[string]string{
		"lib-commits.ndjson": `{"t":100,"commit":"c1","by":"p-ann","modules":[".","sql"],"files":3}
{"t":200,"commit":"c2","by":"p-ann","modules":["sql"],"files":1}

{"t":300,"commit":"c3","by":"p-ben","modules":["."],"files":1}
{"t":400,"commit":"c4","by":"p-ben","modules":[".","sql"],"files":1}
`,
		"lib-releases.ndjson": `{"t":210,"module":".","version":"v1.0.0","commit":"c2"}
{"t":210,"module":"sql","version":"v1.0.0","commit":"c2"}
{"t":350,"module":".","version":"v1.0.1","commit":"branch"}
{"t":400,"module":"sql","version":"v1.1.0","commit":"c4"}
{"t":410,"module":".","version":"v1.1.0","commit":"c4"}
{"t":420,"module":"sql","version":"v1.0.1","commit":"c2"}
`,
		"README.md": "nothing to read",
	})
}

func run1(t *testing.T, w *writer, path string) (Summary, []Problem, error) {
	t.Helper()
	var problems []Problem
	report := func(p Problem) { problems = append(problems, p) }
	repositories := open(t, path)
	plan, err := Examine(repositories, report)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	s, err := Run(t.Context(), repositories, plan, Config{Sender: w, Report: report, Progress: func(done, of int) {
		if steps++; done != steps || of != plan.Commands {
			t.Errorf("progress is %d of %d at step %d, of %d", done, of, steps, plan.Commands)
		}
	}})
	return s, problems, err
}

// TestImport brings a small repository in, twice.
func TestImport(t *testing.T) {
	t.Parallel()
	w := newWriter()
	path := sample(t)
	got, problems, err := run1(t, w, path)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	plan := Plan{Repositories: 1, Commits: 4, Releases: 6, Modules: 2, Commands: 18, From: time.Unix(100, 0).UTC(), To: time.Unix(420, 0).UTC()}
	if diff := cmp.Diff(Summary{Plan: plan, Accepted: 18, Sequence: 18}, got); diff != "" {
		t.Errorf("the first import (-want +got):\n%s", diff)
	}
	carried := map[string]string{}
	for _, s := range w.sent {
		switch p := s.Payload.(type) {
		case commands.SucceedBuild:
			carried[p.ID+" "+p.Request.Ref+" "+p.Request.Commit] = string(p.Manifest)
		case commands.RegisterModule:
			if s.Options.Effective.Unix() != 100 {
				t.Errorf("module %s is registered as of %s, want its first commit's time", p.Module, s.Options.Effective)
			}
		}
		if err := s.Payload.Validate(); err != nil {
			t.Errorf("%T: %v", s.Payload, err)
		}
	}
	commit := func(ids ...string) string {
		list := []ManifestCommit{}
		for _, id := range ids {
			list = append(list, ManifestCommit{"lib", id})
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	at2 := `{"modules":[{"module":"lib","version":"v1.0.0"},{"module":"lib/sql","version":"v1.0.0"},{"module":"lib/sql","version":"v1.0.1"}],"commits":`
	at4 := `{"modules":[{"module":"lib/sql","version":"v1.1.0"},{"module":"lib","version":"v1.1.0"}],"commits":`
	want := map[string]string{
		"release/lib/v1.0.0 v1.0.0 c2":         at2 + commit("c1") + "}",
		"release/lib/sql/v1.0.0 sql/v1.0.0 c2": at2 + commit("c1", "c2") + "}",
		// Its commit is on no list: it holds what came before its time.
		"release/lib/v1.0.1 v1.0.1 branch":     `{"modules":[{"module":"lib","version":"v1.0.1"}],"commits":` + commit("c3") + "}",
		"release/lib/sql/v1.1.0 sql/v1.1.0 c4": at4 + commit("c4") + "}",
		"release/lib/v1.1.0 v1.1.0 c4":         at4 + commit("c4") + "}",
		// An older version that came late holds nothing new.
		"release/lib/sql/v1.0.1 sql/v1.0.1 c2": at2 + commit() + "}",
	}
	if diff := cmp.Diff(want, carried); diff != "" {
		t.Errorf("what came with the versions (-want +got):\n%s", diff)
	}
	again, _, err := run1(t, w, path)
	if diff := cmp.Diff(Summary{Plan: plan, Repeated: 18, Sequence: 36}, again); diff != "" || err != nil {
		t.Errorf("the second import, with error %v (-want +got):\n%s", err, diff)
	}
}

// TestImportReportsProblems has one line of each kind that is no row, and refusals.
func TestImportReportsProblems(t *testing.T) {
	t.Parallel()
	path := folder(t, map[string]string{
		"lib-commits.ndjson": `{"t":200,"commit":"c1","by":"p","modules":["."]}
no row
{"t":"200","commit":"c2"}
{"t":100,"commit":"c3","modules":["."]}
{"t":300,"commit":"c1"}
{"t":300}
{"commit":"c4"}
{"t":300,"t":300,"commit":"c4"}
{"t":300,"commit":"c5","modules":"."}`,
		"lib-releases.ndjson": `{"t":300,"module":".","version":"v1","commit":"c1"}
{"t":300,"module":".","version":"v1","commit":"c1"}
{"t":200,"module":".","version":"v2","commit":"c1"}
{"t":300,"version":"v2","commit":"c1"}
{"t":300,"module":".","commit":"c1"}
{"t":300,"module":".","version":"v2"}
{"t":300,"module":".","version":1.20,"commit":"c1"}`,
	})
	w := newWriter()
	w.answers = map[string]es.Answer{
		"module register": {Status: es.StatusRejected, Error: &es.AnswerError{Code: "registered"}},
		"commit record":   {Status: es.StatusUnchanged},
		"build publish":   {Status: es.StatusRejected, Error: &es.AnswerError{Code: "recorded", Message: "another did", Hint: "use it"}},
	}
	s, problems, err := run1(t, w, path)
	if err != nil || s.Broken != 14 || s.Refused != 1 || s.Accepted != 1 || s.Unchanged != 2 || s.Whole() {
		t.Errorf("the import: %+v, %v", s, err)
	}
	var said []string
	for _, p := range problems {
		said = append(said, (place{p.File, p.Line}).String()+" "+p.Kind+" "+p.Code+": "+p.Message)
	}
	for i, want := range []string{
		"lib-commits.ndjson:2 broken : not JSON", `:3 broken : field "t": "200" is no time`, ":4 broken : commit c3 is before", ":5 broken : commit c1 stands there twice",
		`:6 broken : field "commit" is missing`, `:7 broken : field "t" is missing`, `:8 broken : field "t" stands there twice`, `:9 broken : field "modules": "." is no list`,
		"lib-releases.ndjson:2 broken : version v1 of . stands there twice", ":3 broken : version v2 of . is before", `:4 broken : field "module"`, `:5 broken : field "version"`,
		`:6 broken : field "commit"`, `:7 broken : field "version": 1.20 is no string`, "lib-releases.ndjson:1 refused recorded: another did (use it)",
	} {
		if i >= len(said) || !strings.Contains(said[i], want) {
			t.Errorf("problem %d is not about %q; all are\n%s", i, want, strings.Join(said, "\n"))
			break
		}
	}
}

// TestImportStops ends an import that gets no answers, or is not allowed.
func TestImportStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		w    writer
		want error
	}{
		"no answer": {writer{fails: map[string]error{"commit record": dispatch.ErrTimeout}}, ErrStopped},
		"busy":      {writer{answers: map[string]es.Answer{"commit record": {Status: es.StatusBusy}}}, ErrStopped},
		"denied":    {writer{answers: map[string]es.Answer{"commit record": {Status: es.StatusDenied}}}, dispatch.ErrDenied},
		"forbidden": {writer{fails: map[string]error{"commit record": dispatch.ErrDenied}}, dispatch.ErrDenied},
	} {
		w := c.w
		w.seen = map[string]bool{}
		s, _, err := run1(t, &w, sample(t))
		if !errors.Is(err, c.want) || s.Accepted != 2 {
			t.Errorf("%s: %v with %d accepted, want %v and the two modules", name, err, s.Accepted, c.want)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"b-commits.ndjson": "", "a-releases.ndjson": "", "a-commits.ndjson": "", "x.ndjson": ""})
	var names []string
	for _, r := range open(t, dir) {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("repositories (-want +got):\n%s", diff)
	}
	if one := open(t, filepath.Join(dir, "b-commits.ndjson")); len(one) != 1 || one[0].Name != "b" || one[0].releases != nil {
		t.Errorf("one file gives %+v", one)
	}
	for name, files := range map[string]map[string]string{
		"nothing":      {"x.ndjson": ""},
		"no name":      {"-commits.ndjson": ""},
		"there twice":  {"a-commits.ndjson": "", "a-commits.ndjson.gz": ""},
		"an odd file ": {"a-builds.ndjson": ""},
	} {
		if found, err := Open(folder(t, files)); !errors.Is(err, ErrNoLineage) {
			t.Errorf("%s: got %v and %v, want ErrNoLineage", name, found, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing path gives %v", err)
	}
}

// TestRealLineage examines the real repositories, and holds what came with each version against the plain definition.
func TestRealLineage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(realdata.Dir(t), "lineage")
	repositories := open(t, dir)
	plan, err := Examine(repositories, func(p Problem) { t.Errorf("problem: %+v", p) })
	if err != nil {
		t.Fatal(err)
	}
	if plan.Repositories != 3 || plan.Commits != 5381 || plan.Releases != 4583 || plan.Commits+plan.Releases != 9964 {
		t.Errorf("the plan is %+v", plan)
	}
	largest := 0
	for _, repository := range repositories {
		h, err := repository.read(func(p Problem) error { return errors.New(p.Message) })
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]map[string]bool{}
		err = h.carried(func(release int, commits []int) error {
			r := h.releases[release]
			if held[r.Module] == nil {
				held[r.Module] = map[string]bool{}
			}
			var want, got []string
			at := slices.IndexFunc(h.commits, func(c commitRow) bool { return c.Commit.Commit == r.Commit })
			for i, c := range h.commits {
				before := at >= 0 && i <= at || at < 0 && !c.At.After(r.At)
				if before && slices.Contains(c.Modules, r.Module) && !held[r.Module][c.Commit.Commit] {
					want = append(want, c.Commit.Commit)
					held[r.Module][c.Commit.Commit] = true
				}
			}
			for _, i := range commits {
				got = append(got, h.commits[i].Commit.Commit)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", r.Module, r.Version, diff)
			}
			manifest, err := h.manifest(r.Release, commits)
			largest = max(largest, len(manifest))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if const64K := 64 << 10; largest > const64K/2 {
		t.Errorf("the largest manifest has %d bytes: records have a limit of %d", largest, const64K)
	}
}
