package store

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// updating says whether the page is to be written: -update is the flag of all golden files.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestDocs checks that the page tells of the schema as it is.
func TestDocs(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "architecture", "audit-store.md")
	read, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(read)
	for name, of := range map[string][]table{"views": views(), "tables": tables()} {
		begin, end := "<!-- "+name+": made from audit/store -->\n", "<!-- end -->\n"
		before, rest, opened := strings.Cut(text, begin)
		found, after, closed := strings.Cut(rest, end)
		if !opened || !closed {
			t.Fatalf("%s: no block %q", page, name)
		}
		if diff := gocmp.Diff(described(of), found); diff != "" && !updating() {
			t.Errorf("%s differs from the schema; run go test ./audit/store -run TestDocs -update (-schema +page):\n%s", page, diff)
		}
		text = before + begin + described(of) + end + after
	}
	if updating() {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// described gives each table with its columns.
func described(of []table) string {
	var b strings.Builder
	for _, t := range of {
		fmt.Fprintf(&b, "\n**`%s`** — %s\n\n", t.name, strings.ReplaceAll(t.about, "|", `\|`))
		if t.virtual != "" {
			fmt.Fprintf(&b, "A virtual table: `%s`.\n", t.virtual)
			continue
		}
		b.WriteString("| column | is | |\n|---|---|---|\n")
		for _, c := range t.columns {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.name, c.kind, strings.ReplaceAll(c.about, "|", `\|`))
		}
	}
	return b.String() + "\n"
}
