package estest

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"catenary/es"
)

type lampV0 struct {
	Who string `json:"who"`
}

func goldenRegistry() *es.Registry {
	r := lampRegistry()
	es.Upcast(r, "lamp.on.v0", func(o lampV0) switchedOn { return switchedOn{By: o.Who} })
	return r
}

func goldenSamples() map[string]any {
	return map[string]any{
		"lamp.on.v0":  lampV0{Who: "ann"},
		"lamp.on.v1":  switchedOn{By: "ann", At: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)},
		"lamp.off.v1": switchedOff{By: strings.Repeat("bob ", 10)},
	}
}

// TestGolden pins the bytes of this package's own samples in testdata, as every package of events does.
func TestGolden(t *testing.T) {
	t.Parallel()
	Golden(t, goldenRegistry(), filepath.Join("testdata", "golden"), goldenSamples())
}

func TestGoldenFinds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		// change spoils the samples or the files that were written from good ones.
		change func(samples map[string]any, dir string) error
		says   string
	}{
		{"nothing", func(map[string]any, string) error { return nil }, ""},
		{"a changed value", func(s map[string]any, _ string) error { s["lamp.off.v1"] = switchedOff{By: "x"}; return nil }, "lamp.off.v1.hex differs"},
		{"a missing sample", func(s map[string]any, _ string) error { delete(s, "lamp.on.v0"); return nil }, "lamp.on.v0 has no sample"},
		{"a sample of another type", func(s map[string]any, _ string) error { s["lamp.on.v0"] = switchedOff{}; return nil }, "want a estest.lampV0"},
		{"a sample of nothing", func(s map[string]any, _ string) error { s["lamp.x.v1"] = switchedOff{}; return nil }, "no registered event type"},
		{"a missing file", func(_ map[string]any, dir string) error { return os.Remove(filepath.Join(dir, "lamp.on.v1.hex")) }, "-update"},
		{"a changed file", func(_ map[string]any, dir string) error {
			return os.WriteFile(filepath.Join(dir, "lamp.on.v1.json"), []byte("{}"), 0o600)
		}, "lamp.on.v1.json differs"},
		{"a file of a type that is gone", func(_ map[string]any, dir string) error {
			return os.WriteFile(filepath.Join(dir, "lamp.lost.v1.hex"), nil, 0o600)
		}, "read for ever"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "golden")
			samples := goldenSamples()
			if said := failuresOf(t, func(tb testing.TB) { golden(tb, goldenRegistry(), dir, maps.Clone(samples), true) }); said != "" {
				t.Fatalf("writing says %q", said)
			}
			if err := c.change(samples, dir); err != nil {
				t.Fatal(err)
			}
			said := failuresOf(t, func(tb testing.TB) { golden(tb, goldenRegistry(), dir, samples, false) })
			if c.says == "" && said != "" || !strings.Contains(said, c.says) {
				t.Errorf("says %q, want %q", said, c.says)
			}
		})
	}
}
