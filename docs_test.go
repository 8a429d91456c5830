package catenary_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"catenary/es"
	"catenary/internal/topology"

	"github.com/google/go-cmp/cmp"
)

// update rewrites the blocks of docs/architecture that are made from the code.
var update = flag.Bool("update", false, "rewrite the generated blocks of docs/architecture")

func readText(t *testing.T, p string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(p))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func markdownFiles(t *testing.T) []string {
	t.Helper()
	paths, err := moduleFiles(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return path.Ext(p) != ".md" })
	if !slices.Contains(paths, "README.md") {
		t.Fatal("no README.md found")
	}
	return paths
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestDocsLinks checks that every link to a place in the tree leads somewhere, the heading included.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	for _, p := range markdownFiles(t) {
		for _, m := range markdownLink.FindAllStringSubmatch(withoutCode(readText(t, p)), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			file := p
			if target != "" {
				file = path.Join(path.Dir(p), target)
			}
			if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", p, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readText(t, file)), anchor) {
				t.Errorf("%s: %s has no heading for the link %s", p, file, m[1])
			}
		}
	}
}

var (
	codeBlock   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan    = regexp.MustCompile("`([^`\n]+)`")
	heading     = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func withoutCode(text string) string {
	return codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
}

// anchors gives the names of a page's headings as links use them.
func anchors(text string) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		names = append(names, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

var decisionFile = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)

// TestDocsDecisions checks that no two decisions have one number (a number may be left out: decisions are made at the same time), that they have the template's sections, and are listed with their
// status.
func TestDocsDecisions(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("docs/adr")
	if err != nil {
		t.Fatal(err)
	}
	index := readText(t, "docs/adr/README.md")
	taken := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if name == "README.md" || name == "template.md" {
			continue
		}
		m := decisionFile.FindStringSubmatch(name)
		if m == nil {
			t.Errorf("docs/adr/%s: a decision's file is named NNNN-its-title.md", name)
			continue
		}
		if other := taken[m[1]]; other != "" {
			t.Errorf("docs/adr/%s: %s has that number", name, other)
		}
		taken[m[1]] = name
		text := readText(t, "docs/adr/"+name)
		title, rest, _ := strings.Cut(text, "\n")
		title, numbered := strings.CutPrefix(title, "# "+m[1]+". ")
		if !numbered {
			t.Errorf("docs/adr/%s: the first line is %q, want # %s. and the title", name, title, m[1])
		}
		_, status, _ := strings.Cut(rest, "Status: ")
		status, _, _ = strings.Cut(status, "\n")
		if row := fmt.Sprintf("| [%s](%s) | %s | %s |", m[1], name, title, status); !strings.Contains(index, row) {
			t.Errorf("docs/adr/README.md: no row %s", row)
		}
		for _, section := range []string{"context", "decision", "consequences"} {
			if !slices.Contains(anchors(text), section) {
				t.Errorf("docs/adr/%s: no section %s", name, section)
			}
		}
	}
	if len(taken) == 0 {
		t.Error("no decision found")
	}
}

var glossaryTerm = regexp.MustCompile(`(?m)^- \*\*([^*]+)\*\* — \S`)

// TestDocsGlossary checks that each term stands once, in order within its section, and that the aggregates and the
// statuses of the code are among them.
func TestDocsGlossary(t *testing.T) {
	t.Parallel()
	text := readText(t, "docs/glossary.md")
	var all []string
	for _, section := range strings.Split(text, "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		var terms []string
		for _, m := range glossaryTerm.FindAllStringSubmatch(section, -1) {
			terms = append(terms, m[1])
		}
		if len(terms) != strings.Count(section, "\n- ") {
			t.Errorf("%q: an entry is not of the form - **term** — meaning", title)
		}
		sorted := slices.Sorted(slices.Values(terms))
		if diff := cmp.Diff(sorted, terms); diff != "" {
			t.Errorf("%q is not in order (-sorted +found):\n%s", title, diff)
		}
		all = append(all, terms...)
	}
	seen := map[string]bool{}
	for _, term := range all {
		if seen[term] {
			t.Errorf("%q has two entries", term)
		}
		seen[term] = true
	}
	for name, aggregate := range exportedStrings(t, "events", "Aggregate") {
		if !seen[aggregate] {
			t.Errorf("events.%s: no entry for %q", name, aggregate)
		}
	}
	for name, status := range exportedStrings(t, "es", "Status") {
		if !strings.Contains(text, "\n| `"+status+"` | ") {
			t.Errorf("es.%s: no row for %q", name, status)
		}
	}
}

// exportedStrings gives the exported string constants of a directory whose names have the prefix.
func exportedStrings(t *testing.T, dir, prefix string) map[string]string {
	t.Helper()
	sub, err := fs.Sub(os.DirFS("."), dir)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := parseTree(sub)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, s := range sources {
		if s.dir != "." || s.test {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if !name.IsExported() || !strings.HasPrefix(name.Name, prefix) || i >= len(spec.Values) {
					continue
				}
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					value, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					found[name.Name] = value
				}
			}
			return true
		})
	}
	if len(found) == 0 {
		t.Fatalf("%s has no exported string constant named %s…", dir, prefix)
	}
	return found
}

// TestDocsNames checks both directions between docs/architecture and internal/topology: each name of the topology is
// described, and each bucket or service that a page names is one.
func TestDocsNames(t *testing.T) {
	t.Parallel()
	if es.SubjectPrefix != topology.EventPrefix {
		t.Errorf("events are stored under %q and the stream takes %q", es.SubjectPrefix, topology.EventPrefix)
	}
	names := exportedStrings(t, "internal/topology", "")
	known := []string{"catenary-data"} // the default store of `catenary up`
	for _, name := range names {
		known = append(known, name)
	}
	var described strings.Builder
	ours := regexp.MustCompile(`^(chain|catenary)-[a-z-]+$`)
	for _, p := range markdownFiles(t) {
		text := readText(t, p)
		if path.Dir(p) == "docs/architecture" {
			described.WriteString(text)
		}
		for _, m := range codeSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			bucket := strings.TrimPrefix(m[1], "KV_")
			if (ours.MatchString(bucket) || bucket != m[1]) && bucket != "<bucket>" && !slices.Contains(known, bucket) {
				t.Errorf("%s: internal/topology knows no %q", p, m[1])
			}
		}
	}
	for constant, name := range names {
		if !regexp.MustCompile("`" + regexp.QuoteMeta(name) + "[.`]").MatchString(described.String()) {
			t.Errorf("docs/architecture says nothing of `%s` (topology.%s)", name, constant)
		}
	}
}

// TestDocsCommands checks that each verb and each event has its place in the row of its aggregate.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	const page = "docs/architecture/commands.md"
	rows := map[string][]string{} // aggregate: cells
	for line := range strings.Lines(readText(t, page)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 {
			rows[strings.Trim(cells[0], "|` ")] = cells
		}
	}
	expect := func(aggregate string, cell int, word, from string) {
		if cells := rows[aggregate]; cells == nil || !strings.Contains(cells[cell], "`"+word+"`") {
			t.Errorf("%s: the row of %s does not name `%s` (%s)", page, aggregate, word, from)
		}
	}
	for constant, stored := range exportedStrings(t, "events", "Type") {
		aggregate, rest, _ := strings.Cut(stored, ".")
		name, _, _ := strings.Cut(rest, ".")
		expect(aggregate, 2, name, "events."+constant)
	}
	sources, err := parseTree(os.DirFS("commands"))
	if err != nil {
		t.Fatal(err)
	}
	verbs := 0
	for _, s := range sources {
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Verb" || s.test {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok {
					verbs++
					expect(strings.TrimSuffix(s.path, ".go"), 1, strings.Trim(lit.Value, `"`), s.path)
				}
				return true
			})
		}
	}
	if verbs == 0 {
		t.Error("no verb found in commands")
	}
}

// TestDocsHeaders checks that the headers of events and of commands are described.
func TestDocsHeaders(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ dir, page string }{
		{"es", "docs/architecture/streams.md"},
		{"es/dispatch", "docs/architecture/commands.md"},
	} {
		text := readText(t, of.page)
		for constant, header := range exportedStrings(t, of.dir, "Header") {
			if !strings.Contains(text, "`"+header+"`") {
				t.Errorf("%s says nothing of `%s` (%s.%s)", of.page, header, path.Base(of.dir), constant)
			}
		}
	}
}

// TestDocsGenerated checks that the blocks made from the code are as it makes them now.
func TestDocsGenerated(t *testing.T) {
	t.Parallel()
	for _, block := range []struct{ page, name, from, want string }{
		{"docs/architecture/README.md", "imports", "architecture_test.go", importTableText()},
		{"docs/architecture/streams.md", "streams", "internal/topology", streamTable()},
		{"docs/architecture/accounts.md", "denied", "internal/topology", deniedTable()},
	} {
		begin, end := "<!-- "+block.name+": made from "+block.from+" -->\n", "<!-- end -->\n"
		text := readText(t, block.page)
		before, rest, opened := strings.Cut(text, begin)
		found, after, closed := strings.Cut(rest, end)
		if !opened || !closed {
			t.Errorf("%s: no block %q", block.page, block.name)
			continue
		}
		diff := cmp.Diff(block.want, found)
		switch {
		case diff == "":
		case *update:
			if err := os.WriteFile(filepath.FromSlash(block.page), []byte(before+begin+block.want+end+after), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s differs from %s; run go test . -update (-source +page):\n%s", block.page, block.from, diff)
		}
	}
}

// importTableText shows importTable.
func importTableText() string {
	var b strings.Builder
	b.WriteString("| directory | may import of ours | bus | |\n|---|---|---|---|\n")
	for _, r := range importTable {
		ours := "nothing"
		switch {
		case slices.Contains(r.imports, "..."):
			ours = "all"
		case len(r.imports) > 0:
			ours = "`" + strings.Join(r.imports, "`, `") + "`"
		}
		bus := map[busUse]string{noBus: "", busFiles: "in bus*.go", anyFile: "yes"}[r.bus]
		if r.server {
			bus += ", and the server"
		}
		var remarks []string
		if r.pure {
			remarks = append(remarks, "pure")
		}
		if r.harness {
			remarks = append(remarks, "for tests only")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.dir, ours, bus, strings.Join(remarks, ", "))
	}
	return b.String()
}

// streamTable shows every stream of the ledger account with its limits.
func streamTable() string {
	var b strings.Builder
	b.WriteString("| stream | subjects | bytes at most | values of a key | delete and purge | persistence on one node |\n|---|---|---|---|---|---|\n")
	streams := listOf(topology.Events(topology.Options{}))
	for _, bucket := range topology.ChainBuckets() {
		streams = append(streams, topology.Bucket(bucket, topology.Options{}))
	}
	streams = append(streams, topology.Actors(topology.Options{}), topology.Views(topology.Options{}), topology.Marks(topology.Options{}), topology.Baton(topology.Options{}),
		topology.Inbox(topology.Options{}), topology.Parked(topology.Options{}), topology.Receipts(topology.Options{}),
		topology.Tiles(topology.Options{}), topology.Checkpoints(topology.Options{}), topology.Refused(topology.Options{}), topology.Snapshots(topology.Options{}),
		topology.Artifacts(topology.Options{}), topology.Logs(topology.Options{}))
	for _, s := range streams {
		kept := "all"
		if s.MaxMsgsPerSubject > 0 {
			kept = strconv.FormatInt(s.MaxMsgsPerSubject, 10)
		}
		denied := "possible"
		if s.DenyDelete && s.DenyPurge {
			denied = "refused"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %v |\n", s.Name, strings.Join(s.Subjects, "`, `"), binaryBytes(s.MaxBytes), kept, denied, strings.ToLower(s.PersistMode.String()))
	}
	return b.String()
}

// listOf makes a list without naming the type of its elements: it belongs to the bus, which this package does not import.
func listOf[T any](values ...T) []T { return values }

// deniedTable shows what the people of the ops account may not do.
func deniedTable() string {
	var b strings.Builder
	b.WriteString("| may not publish to | may not listen on |\n|---|---|\n")
	publish, subscribe := topology.PeoplePublishDeny(), topology.PeopleSubscribeDeny()
	cell := func(subjects []string, i int) string {
		if i >= len(subjects) {
			return ""
		}
		return "`" + subjects[i] + "`"
	}
	for i := range max(len(publish), len(subscribe)) {
		fmt.Fprintf(&b, "| %s | %s |\n", cell(publish, i), cell(subscribe, i))
	}
	return b.String()
}

func binaryBytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

var (
	makeTarget  = regexp.MustCompile(`(?m)^([a-z]+):.*?(##.*)?$`)
	makeCommand = regexp.MustCompile(`\bmake ([a-z]+)\b`)
)

// TestDocsMakeTargets checks that `make help` has a line for every target, that the pages' make commands exist, and that
// the binaries the Makefile builds are there.
func TestDocsMakeTargets(t *testing.T) {
	t.Parallel()
	makefile := readText(t, "Makefile")
	targets := []string{}
	for _, m := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
		if m[2] == "" {
			t.Errorf("Makefile: %s has no ## line for make help", m[1])
		}
	}
	for _, want := range []string{"help", "run", "test", "race", "lint", "verify", "bench", "fuzz"} {
		if !slices.Contains(targets, want) {
			t.Errorf("Makefile: no target %s", want)
		}
	}
	for _, p := range append(markdownFiles(t), ".ci/run") {
		text := readText(t, p)
		for _, span := range append(codeBlock.FindAllString(text, -1), codeSpan.FindAllString(text, -1)...) {
			for _, m := range makeCommand.FindAllStringSubmatch(span, -1) {
				if !slices.Contains(targets, m[1]) {
					t.Errorf("%s: make %s is no target", p, m[1])
				}
			}
		}
	}
	_, binaries, _ := strings.Cut(makefile, "BINARIES := ")
	binaries, _, _ = strings.Cut(binaries, "\n")
	for _, name := range strings.Fields(binaries) {
		if _, err := os.Stat("cmd/" + name); err != nil {
			t.Errorf("Makefile: cmd/%s is not there to be built", name)
		}
	}
}
