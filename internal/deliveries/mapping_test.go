package deliveries

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
)

// TestCommand pins every byte of what rows become: writers hold the same id with another body for another command, so a
// change here would make every import done before fail when it is repeated.
func TestCommand(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name       string
		row        Row
		verb, body string
	}{
		{"deploy", Row{Environment: "integration", App: "whitehall", Kind: KindDeploy, Old: ptr("v1"), New: ptr("v2"), Commit: "de80"},
			"assign", `{"node":"integration","module":"whitehall","package":{"name":"whitehall","version":"v2"},"reason":"deploy by commit de80"}`},
		{"add without a commit", Row{Environment: "e", App: "a", Kind: KindAdd, New: ptr("1.20")},
			"assign", `{"node":"e","module":"a","package":{"name":"a","version":"1.20"},"reason":"add"}`},
		{"remove", Row{Environment: "e", App: "a", Kind: KindRemove, Old: ptr("1"), Commit: "c"},
			"unassign", `{"node":"e","module":"a","reason":"remove by commit c"}`},
		{"promotion off", Row{Environment: "e", App: "a", Kind: KindPolicy, Policy: PolicyPromote, New: ptr("false"), Commit: "c"},
			"declare", `{"name":"promote_deployment e a","selector":{"modules":["a"],"nodes":["e"]},"reason":"policy by commit c"}`},
		{"promotion on", Row{Environment: "e", App: "a", Kind: KindPolicy, Policy: PolicyPromote, New: ptr("true"), Commit: "c"},
			"lift", `{"name":"promote_deployment e a","reason":"policy by commit c"}`},
		{"names with spaces are quoted", Row{Environment: "e f", App: `a "b"`, Kind: KindPolicy, Policy: PolicyPromote},
			"lift", `{"name":"promote_deployment \"e f\" \"a \\\"b\\\"\"","reason":"policy"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command, err := c.row.Command()
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(command)
			if err != nil {
				t.Fatal(err)
			}
			if command.Verb() != c.verb || string(body) != c.body {
				t.Errorf("got %s %s\nwant %s %s", command.Verb(), body, c.verb, c.body)
			}
			if err := command.Validate(); err != nil {
				t.Errorf("the command is not valid: %v", err)
			}
		})
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	const lifted, declared, unclear = "lift", "declare", "unclear"
	cases := []struct {
		value           *string
		promote, manual string
	}{
		{nil, lifted, lifted},
		{ptr("true"), lifted, declared},
		{ptr("True"), lifted, declared},
		{ptr("  TRUE "), lifted, declared},
		{ptr("true # until Monday"), lifted, declared},
		{ptr(`true\nmanual_deployment=false`), lifted, declared}, // stands in the real history, with the backslash
		{ptr("true\nmanual_deployment=false"), lifted, declared},
		{ptr("false"), declared, lifted},
		{ptr("FALSE;"), declared, lifted},
		{ptr("truely"), unclear, unclear},
		{ptr("yes"), unclear, unclear},
		{ptr("1"), unclear, unclear},
		{ptr(""), unclear, unclear},
		{ptr("not true"), unclear, unclear},
	}
	for _, c := range cases {
		for policy, want := range map[Policy]string{PolicyPromote: c.promote, PolicyAutomatic: c.promote, PolicyManual: c.manual} {
			command, err := Row{Environment: "e", App: "a", Kind: KindPolicy, Policy: policy, New: c.value}.Command()
			got := unclear
			if err == nil {
				got = command.Verb()
			} else if !errors.Is(err, ErrUnclear) {
				t.Errorf("%s: %v is not marked as unclear", policy, err)
			}
			if got != want {
				t.Errorf("%s set to %v: got %s, want %s", policy, show(c.value), got, want)
			}
		}
	}
}

func show(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func TestFreezeNamesAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string][2]string{}
	for _, p := range [][2]string{{"a", "b c"}, {"a b", "c"}, {`"a`, `b" c`}, {"a", `"b c"`}, {`a "b`, "c"}, {"a", "b"}} {
		name := Row{Environment: p[0], App: p[1], Policy: PolicyPromote}.freeze()
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both named %s", other, p, name)
		}
		seen[name] = p
	}
}

// TestIDs pins the ids: with another one, an import done before would be done again.
func TestIDs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 7, 34, 45, 0, time.UTC)
	row := Row{At: at, Environment: "integration", App: "whitehall", Kind: KindDeploy, Old: ptr("v1"), New: ptr("v2"), By: "bot-6", Commit: "de80"}
	c := newCounter("history.ndjson")
	got := map[string]string{
		"row":       c.rowID(row),
		"row again": c.rowID(row),
		"node":      nodeID("history.ndjson", "integration"),
		"module":    moduleID("history.ndjson", "integration"),
		"state":     stateID("history.ndjson", at, "integration", "whitehall", "v1"),
	}
	want := map[string]string{
		"row":       "97e7a0b8-5336-8748-af4b-e189659914f4",
		"row again": "66fa1153-d55d-8564-8821-ee72514c39d2",
		"node":      "1e6bf7d8-d17b-880c-8f16-a1544aee0c5d",
		"module":    "1be17cce-56fc-8622-920a-53159a1b957d",
		"state":     "fde8f84e-4886-80ce-9be4-ccb141ff51a4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

func TestIDsTellRowsApart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 7, 34, 45, 0, time.UTC)
	base := Row{At: at, Environment: "e", App: "a", Kind: KindDeploy, New: ptr("1")}
	vary := map[string]Row{"base": base}
	for name, change := range map[string]func(*Row){
		"time":           func(r *Row) { r.At = at.Add(time.Nanosecond) },
		"environment":    func(r *Row) { r.Environment = "f" },
		"app":            func(r *Row) { r.App = "b" },
		"kind":           func(r *Row) { r.Kind = KindAdd },
		"policy":         func(r *Row) { r.Policy = PolicyManual },
		"old":            func(r *Row) { r.Old = ptr("") },
		"new":            func(r *Row) { r.New = ptr("2") },
		"no new":         func(r *Row) { r.New = nil },
		"by":             func(r *Row) { r.By = "x" },
		"commit":         func(r *Row) { r.Commit = "x" },
		"shifted by one": func(r *Row) { r.Environment, r.App = "ea", "" },
	} {
		r := base
		change(&r)
		vary[name] = r
	}
	seen := map[string]string{}
	for name, r := range vary {
		id := newCounter("s").rowID(r)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have the same id", name, other)
		}
		seen[id] = name
		if again := newCounter("s").rowID(r); again != id {
			t.Errorf("%s: another id the second time", name)
		}
		if elsewhere := newCounter("t").rowID(r); elsewhere == id {
			t.Errorf("%s: the same id in another source", name)
		}
	}
	zone := base
	zone.At = at.In(time.FixedZone("", 7200))
	if newCounter("s").rowID(zone) != newCounter("s").rowID(base) {
		t.Error("the same instant in another zone gives another id")
	}
}
