package telemetry_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/internal/telemetry"
)

// update rewrites the list in docs/metrics.md.
var update = flag.Bool("update", false, "rewrite the list of metrics in docs/metrics.md")

const metricsPage = "../../docs/metrics.md"

// TestDocsMetrics checks that the page lists the metrics as they are.
func TestDocsMetrics(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- metrics: made from internal/telemetry -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	found, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatal("the page has no list")
	}
	want := metricsTable()
	diff := cmp.Diff(want, found)
	switch {
	case diff == "":
	case *update:
		if err := os.WriteFile(metricsPage, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("it differs; run go test ./internal/telemetry -update (-code +page):\n%s", diff)
	}
}

func metricsTable() string {
	var b strings.Builder
	part := ""
	for _, d := range telemetry.Definitions() {
		if d.Part != part {
			part = d.Part
			fmt.Fprintf(&b, "\n### %s\n\n| metric | kind | labels | what it is |\n|---|---|---|---|\n", part)
		}
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, labels, d.Help)
	}
	return b.String()
}
