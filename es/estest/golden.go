package estest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"catenary/es"
)

// update is set by go test's -update: golden files are then written instead of compared.
var update = flag.Bool("update", false, "write golden files instead of comparing them")

// hexLine is how many bytes stand on a line of a golden file.
const hexLine = 32

// Golden pins the stored form of every event type, old versions included: it encodes each sample and compares it with
// <dir>/<stored name>.hex, beside which a .json file shows the same to people. Every stored name MUST have a sample and
// its files; run the test with -update to write them. A difference means that events already stored would be read or
// written differently: that needs a new version, not a new file.
func Golden(t *testing.T, registry *es.Registry, dir string, samples map[string]any) {
	t.Helper()
	golden(t, registry, dir, samples, *update)
}

func golden(t testing.TB, registry *es.Registry, dir string, samples map[string]any, write bool) {
	t.Helper()
	names := registry.Names()
	slices.Sort(names)
	for _, name := range names {
		sample, ok := samples[name]
		if !ok {
			t.Errorf("%s has no sample: add one with every field set", name)
			continue
		}
		goldenOne(t, registry, dir, name, sample, write)
	}
	for name := range samples {
		if !slices.Contains(names, name) {
			t.Errorf("the sample %s belongs to no registered event type", name)
		}
	}
	for _, file := range goldenFiles(t, dir) {
		name := strings.TrimSuffix(strings.TrimSuffix(file, ".hex"), ".json")
		if !slices.Contains(names, name) {
			t.Errorf("%s belongs to no registered event type: stored names are read for ever, register it again", filepath.Join(dir, file))
		}
	}
}

func goldenFiles(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Errorf("golden files: %v", err)
		return nil
	}
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	return files
}

func goldenOne(t testing.TB, registry *es.Registry, dir, name string, sample any, write bool) {
	t.Helper()
	zero, err := registry.Zero(name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if reflect.TypeOf(zero) != reflect.TypeOf(sample) {
		t.Errorf("%s: the sample is a %T, want a %T", name, sample, zero)
		return
	}
	body, err := registry.Codec().Marshal(sample)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	readable, err := json.MarshalIndent(sample, "", "  ")
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	compare(t, filepath.Join(dir, name+".hex"), []byte(dump(body)), write)
	compare(t, filepath.Join(dir, name+".json"), append(readable, '\n'), write)

	// What is stored can be read, and comes out as the same bytes again.
	back := reflect.New(reflect.TypeOf(zero))
	if err := registry.Codec().Unmarshal(body, back.Interface()); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	again, err := registry.Codec().Marshal(back.Elem().Interface())
	if err != nil || !bytes.Equal(body, again) {
		t.Errorf("%s: read and stored again it is %x (%v), was %x", name, again, err, body)
	}
	e := es.Event{Type: name, Ref: es.Ref{Aggregate: "golden", Key: "x"}, Body: body}
	m := (&Chain{Label: "golden"}).Seal(&e)
	if decoded, err := registry.Decode(m); err != nil || decoded.Data == nil {
		t.Errorf("%s can't be brought to its present version: %v", name, err)
	}
}

func dump(body []byte) string {
	var b strings.Builder
	for line := range slices.Chunk(body, hexLine) {
		b.WriteString(hex.EncodeToString(line))
		b.WriteByte('\n')
	}
	return b.String()
}

func compare(t testing.TB, path string, got []byte, write bool) {
	t.Helper()
	if write {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Errorf("golden file: %v", err)
			return
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Errorf("golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("golden file: %v: run the test with -update, and review what it writes", err)
		return
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs.\nstored:\n%s\nnow:\n%s\nA change of a stored form needs a new version of the event.", path, want, got)
	}
}
