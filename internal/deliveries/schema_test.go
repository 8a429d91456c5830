package deliveries

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"catenary/internal/ndjson"
	"catenary/internal/realdata"
)

const guides = "../../docs/guides"

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join(guides, "delivery-row.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t *testing.T, s *jsonschema.Schema, line []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func TestSchemaTakesRealRows(t *testing.T) {
	t.Parallel()
	dir, s := realdata.Dir(t), schema(t)
	for _, name := range []string{"deliveries-2026-05-07.ndjson.gz", "full-2024-01_2026-07-slim.ndjson.gz"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := ndjson.Open(filepath.Join(dir, "govuk", name), nil)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			err = source.Lines(func(number int, line []byte, broken error) error {
				// Every seventh row has every kind and every switch among them, in a seventh of the time.
				if rows++; rows%7 != 0 {
					return broken
				}
				if err := valid(t, s, line); err != nil {
					t.Errorf("line %d: %v", number, err)
				}
				return broken
			})
			if err != nil || rows == 0 {
				t.Fatalf("%d rows, %v", rows, err)
			}
		})
	}
}

// TestSchemaAgreesWithTheReader: what one of them refuses for its shape, the other does too.
func TestSchemaAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	s := schema(t)
	base := map[string]string{"t": `"2026-05-01T07:34:45Z"`, "env": `"e"`, "app": `"a"`, "kind": `"deploy"`, "new": `"1"`}
	kinds := map[string]map[string]string{
		"deploy": base,
		"add":    with(base, "kind", `"add"`, "old", "null"),
		"remove": with(base, "kind", `"remove"`, "new", "null", "old", `"1"`),
		"policy": with(base, "kind", `"policy"`, "key", `"manual_deployment"`, "new", `"true"`),
	}
	values := []string{"", "null", `""`, `"x"`, "1", "1.20", "true", "[]", "{}", `"deploy"`, `"remove"`, `"policy"`, `"2026-05-01T07:34:45+02:00"`, `"2026-05-01"`, `"promote_deployment"`}
	agreed := 0
	for kind, row := range kinds {
		for _, field := range []string{"t", "env", "app", "kind", "key", "old", "new", "by", "commit", "other"} {
			for _, value := range values {
				line := object(with(row, field, value))
				_, read := ParseRow([]byte(line))
				if checked := valid(t, s, []byte(line)); (read == nil) != (checked == nil) {
					t.Errorf("%s row %s: the reader says %v, the schema %v", kind, line, read, checked)
				}
				if read == nil {
					agreed++
				}
			}
		}
	}
	if agreed < 100 {
		t.Errorf("only %d rows were taken by both", agreed)
	}
}

// with gives a copy of a row with fields set; an empty value leaves the field out.
func with(row map[string]string, set ...string) map[string]string {
	changed := map[string]string{}
	for k, v := range row {
		changed[k] = v
	}
	for i := 0; i < len(set); i += 2 {
		if changed[set[i]] = set[i+1]; set[i+1] == "" {
			delete(changed, set[i])
		}
	}
	return changed
}

func object(row map[string]string) string {
	var fields []string
	for k, v := range row {
		fields = append(fields, `"`+k+`":`+v)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// TestGuide: the rows in the guide are rows, and its state file is one.
func TestGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(guides, "import.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of JSON in the guide, want rows, a state file and an outcome", len(blocks))
	}
	s := schema(t)
	rows := bytes.Split(bytes.TrimSpace(blocks[0][1]), []byte("\n"))
	for _, line := range rows {
		if err := valid(t, s, line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	plan, problems := examine(t, Input{Source: file(t, "history.ndjson", blocks[0][1])})
	if len(problems) > 0 || plan.Rows != len(rows) || plan.Begins != 1 || plan.Ends != 1 || plan.Commands["freeze declare"] != 1 {
		t.Errorf("the guide's rows give %+v, %+v", plan, problems)
	}
	if state, err := ReadState(bytes.NewReader(blocks[1][1]), plan.From); err != nil || len(state.Pairs) != 3 {
		t.Errorf("the guide's state file gives %+v, %v", state, err)
	}
}
