package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func TestYAMLDocument(t *testing.T) {
	t.Parallel()
	raw := `{"zebra":"first","package":{"name":"@acme/x","version":"1.20"},"versions":["4651090","0362525","1e5","true","null","012","NaN","yes","1.20"],
		"count":12345678901234567890,"ratio":1e5,"on":true,"none":null,"empty":{},"list":[],"text":"two\nlines","shell":"a: b # c","date":"2026-05-01"}`
	want := `zebra: first
package:
  name: "@acme/x"
  version: "1.20"
versions:
  - "4651090"
  - "0362525"
  - "1e5"
  - "true"
  - "null"
  - "012"
  - "NaN"
  - "yes"
  - "1.20"
count: 12345678901234567890
ratio: 1e5
"on": true
none: null
empty: {}
list: []
text: "two\nlines"
shell: "a: b # c"
date: "2026-05-01"
`
	found, err := yamlDocument([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(found)); diff != "" {
		t.Errorf("YAML (-want +found):\n%s", diff)
	}
}

// TestYAMLSaysTheSame: whatever JSON holds, reading its YAML gives it back.
func TestYAMLSaysTheSame(t *testing.T) {
	t.Parallel()
	value := func(t *rapid.T) any {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return rapid.Bool().Draw(t, "truth")
		case 1:
			return rapid.SampledFrom([]string{"1.20", "0o17", "0x1F", "1_000", "12:30:45", "~", "<<", "=", "-", "---", "!x", "&a", "*a", ".inf", "y", "2026-05-01T00:00:00Z"}).Draw(t, "trap")
		case 2:
			return nil
		default:
			return rapid.String().Draw(t, "text")
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		record := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			record[rapid.String().Draw(t, "name")] = []any{value(t), map[string]any{"x": value(t)}}
		}
		raw, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yamlItem(raw)
		if err != nil {
			t.Fatal(err)
		}
		var found []map[string]any
		if err := yaml.Unmarshal(text, &found); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff([]map[string]any{record}, found); diff != "" {
			t.Fatalf("what the YAML says (-want +found):\n%s\n%s", diff, text)
		}
	})
}
