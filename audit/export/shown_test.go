package export_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/audit/export"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
)

// TestCheckShown: a line may be written otherwise, but what it says must be what is stored.
func TestCheckShown(t *testing.T) {
	t.Parallel()
	chain := estest.Chain{Label: "a"}
	name, body, err := events.Registry().Encode(events.NodeRegistered{Node: "n1", Labels: map[string]string{"a": "1", "A": "<2>"}})
	if err != nil {
		t.Fatal(err)
	}
	stored := chain.Seal(&es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}, Type: name, Body: body, Command: es.Cause{Actor: "a-ann"}})
	line, err := json.Marshal(audit.NewItem(events.Registry(), stored))
	if err != nil {
		t.Fatal(err)
	}
	check := export.CheckShown(events.Registry())
	for name, c := range map[string]struct {
		change func(string) string
		says   string
	}{
		"as it was written":      {func(s string) string { return s }, ""},
		"written otherwise":      {func(s string) string { return strings.NewReplacer(`":`, `" : `, `\u003c`, "<").Replace(s) }, ""},
		"another actor":          {func(s string) string { return strings.Replace(s, `"actor":"a-ann"`, `"actor":"a-eve"`, 1) }, `it shows actor as "a-eve", and the stored event says "a-ann"`},
		"no actor":               {func(s string) string { return strings.Replace(s, `"actor":"a-ann",`, ``, 1) }, "it does not show actor"},
		"something of its own":   {func(s string) string { return strings.Replace(s, `{`, `{"approved":true,`, 1) }, "it shows approved as true"},
		"another label":          {func(s string) string { return strings.Replace(s, `"a":"1"`, `"a":"2"`, 1) }, "it shows data"},
		"a label twice":          {func(s string) string { return strings.Replace(s, `"a":"1"`, `"a":"2","a":"1"`, 1) }, "a member stands twice"},
		"a problem that is none": {func(s string) string { return strings.Replace(s, `{`, `{"problem":"not readable",`, 1) }, "it shows problem"},
	} {
		changed := c.change(string(line))
		if changed == string(line) && c.says != "" {
			t.Fatalf("%s: the line was not changed: %s", name, changed)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(changed), &members); err != nil {
			t.Fatal(err)
		}
		switch err := check(members, stored); {
		case c.says == "" && err != nil:
			t.Errorf("%s: it gave %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || errors.FlattenHints(err) == ""):
			t.Errorf("%s: it gave %v, want %q", name, err, c.says)
		}
	}
}
