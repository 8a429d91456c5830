package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"catenary/chain"
	"catenary/internal/lineage"
)

// TestImportLineage brings a small repository in through the bus, twice.
func TestImportLineage(t *testing.T) {
	t.Parallel()
	c := on(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"lin-1-commits.ndjson": `{"t":1700000000,"commit":"c1","by":"lineage-ann","modules":[".","sql"],"files":3}
{"t":1700000100,"commit":"c2","by":"lineage-ann","modules":["sql"],"files":1}`,
		"lin-1-releases.ndjson": `{"t":1700000200,"module":"sql","version":"v1.20","commit":"c2"}
{"t":1700000200,"module":".","version":"v1.20","commit":"c2"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if dry := c.ok("import", "lineage", dir, "--dry-run"); !strings.Contains(dry.err, "would send 8 commands") {
		t.Errorf("the dry run says %s", dry.err)
	}
	c.must(exitNotFound, "get", "module", "lin-1")
	first := read[lineageReport](c, "import", "lineage", dir)
	if first.Accepted != 8 || !first.Whole() || first.Sequence == 0 || first.Problems == nil {
		t.Errorf("the first import: %+v", first)
	}
	again := c.ok("import", "lineage", dir, "-o", "json")
	var second lineageReport
	if err := json.Unmarshal([]byte(again.out), &second); err != nil {
		t.Fatal(err)
	}
	if second.Repeated != 8 || second.Accepted != 0 || !strings.Contains(again.err, "nothing has changed") {
		t.Errorf("the second import: %+v\n%s", second, again.err)
	}
	build := read[chain.Build](c, "get", "build", "release/lin-1/sql/v1.20")
	var manifest lineage.Manifest
	if err := json.Unmarshal(build.Manifest, &manifest); err != nil {
		t.Fatal(err)
	}
	if build.Commit != "c2" || build.Published.String() != "lin-1/sql@v1.20" || len(manifest.Modules) != 2 || len(manifest.Commits) != 2 {
		t.Errorf("the build is %+v with manifest %s", build, build.Manifest)
	}
	if found := c.ok("get", "commits", "-o", "table").out; !strings.Contains(found, "lineage-ann") {
		t.Errorf("the commits don't show their author:\n%s", found)
	}
	for path, says := range map[string]string{dir + "/none": "no such file", t.TempDir(): "REPOSITORY-commits.ndjson"} {
		if found := c.call("import", "lineage", path); found.code == exitOK || !strings.Contains(found.err, says) {
			t.Errorf("%s gives %d and %s, want a word on %q", path, found.code, found.err, says)
		}
	}
	broken := filepath.Join(t.TempDir(), "lin-2-commits.ndjson")
	if err := os.WriteFile(broken, []byte("no row\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := c.must(exitFailed, "import", "lineage", broken); !strings.Contains(found.err, "lin-2-commits.ndjson line 1: broken: not JSON") {
		t.Errorf("a broken row is reported by\n%s", found.err)
	}
}
