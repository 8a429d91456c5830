package integration

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/internal/deliveries"
	"catenary/internal/ndjson"
	"catenary/internal/realdata"
)

// pair is an app in an environment.
type pair struct{ environment, app string }

// ended stands in a history for the end of an assignment.
const ended = "(ended)"

// change is a value of a history as the tool prints it.
type change struct {
	Sequence  uint64           `json:"sequence"`
	Effective string           `json:"effective"`
	For       string           `json:"on-behalf-of"`
	Value     chain.Assignment `json:"value"`
}

// govuk is the folder of the real histories.
func govuk(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(realdata.Dir(t), "govuk", name)
}

// readJSON reads a file of the data.
func readJSON[T any](t *testing.T, path string) T {
	t.Helper()
	var v T
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// readLines reads a file of JSON lines, plain or packed.
func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	source, err := ndjson.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	err = source.Lines(func(_ int, line []byte, broken error) error {
		var row T
		rows = append(rows, row)
		return errors.CombineErrors(broken, json.Unmarshal(line, &rows[len(rows)-1]))
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// loadSlice writes the first rows of the load set to a file, and gives what they say of each pair.
func loadSlice(t *testing.T, rows int) (path string, versions map[pair][]string) {
	t.Helper()
	in, err := os.Open(govuk(t, "full-2024-01_2026-07-slim.ndjson.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // only read
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "load.ndjson")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	versions = map[pair][]string{}
	lines := bufio.NewScanner(unpacked)
	for n := 0; lines.Scan() && (rows == 0 || n < rows); n++ {
		if _, err := out.Write(append(slices.Clone(lines.Bytes()), '\n')); err != nil {
			t.Fatal(err)
		}
		row, err := deliveries.ParseRow(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		p := pair{row.Environment, row.App}
		switch row.Kind {
		case deliveries.KindDeploy, deliveries.KindAdd:
			versions[p] = append(versions[p], *row.New)
		case deliveries.KindRemove:
			if len(versions[p]) > 0 { // else nothing stood that could end
				versions[p] = append(versions[p], ended)
			}
		case deliveries.KindPolicy:
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path, versions
}

// versionsOf gives what a history says, in order.
func versionsOf(history []change) []string {
	var got []string
	for _, c := range history {
		if c.Value.Stands() {
			got = append(got, c.Value.Package.Version)
		} else {
			got = append(got, ended)
		}
	}
	return got
}

// standing gives the version of every assignment that the tool lists.
func standing(c tool) map[pair]string {
	c.t.Helper()
	got := map[pair]string{}
	for _, a := range read[[]chain.Assignment](c, "get", "assignments") {
		got[pair{a.Node, a.Module}] = a.Package.Version
	}
	return got
}

// imported is the outcome of an import as far as tests look at it.
type imported struct {
	Rows, Accepted, Repeated, Unchanged, Refused, Broken, Unclear, Registered int
	Problems                                                                  []json.RawMessage
}
