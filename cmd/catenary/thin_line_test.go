package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// TestThinLine goes once through the chain: a command becomes an event, the event a record, and the record is read.
func TestThinLine(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("thin")
	c.module("line")
	answer := read[es.Answer](c, "assign", "thin", "line", "--package", "line@1.20", "--effective", "2026-05-01T07:00:00Z", "--on-behalf-of", "ann", "--reason", "try <it>")
	want := es.Answer{
		Status: es.StatusAccepted, Command: answer.Command, Aggregate: "assignment", Key: "thin.line", Version: 1, Sequence: answer.Sequence,
		Events: []es.AnswerEvent{{Sequence: answer.Sequence, Type: events.TypeAssignmentAssigned, Aggregate: "assignment", Key: "thin.line", Version: 1}},
	}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("answer (-want +found):\n%s", diff)
	}
	told := strconv.FormatUint(answer.Sequence, 10)
	record := `{"node":"thin","module":"line","assigned":"2026-05-01T07:00:00Z","package":{"name":"line","version":"1.20"},"since":"2026-05-01T07:00:00Z","told":` + told + `}`
	for args, want := range map[string]string{
		"get assignment thin line -o json":        record + "\n",
		"get assignments --node thin -o json":     "[" + record + "]\n",
		"get assignments thin.line -o json":       "[" + record + "]\n",
		"get assignments --module line -o name":   "thin.line\n",
		"get assignment thin line -o name":        "thin.line\n",
		"get modules line -o name":                "line\n",
		"get assignment thin line -o yaml":        "node: thin\nmodule: line\nassigned: \"2026-05-01T07:00:00Z\"\npackage:\n  name: line\n  version: \"1.20\"\nsince: \"2026-05-01T07:00:00Z\"\ntold: " + told + "\n",
		"get assignments thin.line -o yaml":       "- node: thin\n  module: line\n  assigned: \"2026-05-01T07:00:00Z\"\n  package:\n    name: line\n    version: \"1.20\"\n  since: \"2026-05-01T07:00:00Z\"\n  told: " + told + "\n",
		"get freezes --all -o json no-such-thing": "[]\n",
	} {
		found := c.call(strings.Fields(args)...)
		if diff := cmp.Diff(want, found.out); diff != "" {
			t.Errorf("%s (-want +found):\n%s%s", args, diff, found.err)
		}
	}

	c.ok("assign", "thin", "line", "--package", "line@1.21", "--effective", "2026-05-02T07:00:00Z")
	c.ok("unassign", "thin", "line", "--effective", "2026-05-03T07:00:00Z")
	type change struct {
		Sequence  uint64           `json:"sequence"`
		Effective string           `json:"effective"`
		Actor     string           `json:"actor"`
		For       string           `json:"on-behalf-of"`
		Value     chain.Assignment `json:"value"`
	}
	history := read[[]change](c, "history", "assignment", "thin", "line")
	if len(history) != 3 {
		t.Fatalf("%d values of history, want 3: %+v", len(history), history)
	}
	if h := history[0]; h.Sequence != answer.Sequence || h.Effective != "2026-05-01T07:00:00Z" || h.Actor != "operator" || h.For != "ann" {
		t.Errorf("the first value is %+v, want event %d by operator on behalf of ann", h, answer.Sequence)
	}
	for i, want := range []string{"1.20", "1.21", "1.21"} {
		if found := history[i].Value.Package.Version; found != want {
			t.Errorf("value %d has version %s, want %s", i, found, want)
		}
	}
	if history[1].Value.Ended.IsZero() == history[2].Value.Ended.IsZero() {
		t.Errorf("only the last value should have ended: %+v", history)
	}

	for at, want := range map[string]string{"2026-05-01T12:00:00Z": "1.20", "2026-05-02T07:00:00Z": "1.21"} {
		if found := read[chain.Assignment](c, "get", "assignment", "thin", "line", "--as-of", at); found.Package.Version != want || !found.Stands() {
			t.Errorf("as of %s it was %+v, want %s and standing", at, found, want)
		}
	}
	if found := read[chain.Assignment](c, "get", "assignment", "thin", "line", "--as-of", "2026-05-04T00:00:00Z"); found.Stands() {
		t.Errorf("as of the day after its end it is %+v, want ended", found)
	}
	c.must(exitNotFound, "get", "assignment", "thin", "line", "--as-of", "2026-04-01T00:00:00Z")

	// What has ended is listed only when it is asked for.
	if found := read[[]chain.Assignment](c, "get", "assignments", "--node", "thin"); len(found) != 0 {
		t.Errorf("the list shows %+v, want nothing: it has ended", found)
	}
	if found := read[[]chain.Assignment](c, "get", "assignments", "--node", "thin", "--all"); len(found) != 1 {
		t.Errorf("the list with --all shows %+v, want the ended one", found)
	}
}

// TestTables pins what people see.
func TestTables(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.ok("send", "node", "register", "--effective", "2026-05-01T07:00:00Z", "--data", `{"node":"table-node","managed-by":"external","labels":{"zone":"a","role":"front"}}`)
	c.ok("send", "module", "register", "--effective", "2026-05-01T07:00:00Z", "--data", `{"module":"table-module"}`)
	c.ok("assign", "table-node", "table-module", "--package", "web@1.20", "--effective", "2026-05-01T08:00:00Z", "--on-behalf-of", "ann")
	berlin := c.with(map[string]string{"TZ": "Europe/Berlin"})
	for args, want := range map[string]string{
		"get nodes table-node": `
NODE        MANAGED BY  LABELS              REGISTERED                 RETIRED
table-node  external    role=front, zone=a  2026-05-01 09:00:00 +0200
`,
		"get assignments --node table-node": `
NODE        MODULE        TOLD      SINCE                      ENDED  REQUIRED BY  OBSERVED
table-node  table-module  web@1.20  2026-05-01 10:00:00 +0200
`,
	} {
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), berlin.ok(strings.Fields(args)...).out); diff != "" {
			t.Errorf("%s (-want +found):\n%s", args, diff)
		}
	}
	nothing := c.ok("get", "assignments", "--node", "table-nobody")
	if nothing.out != "" || !strings.Contains(nothing.err, "no assignments stand") {
		t.Errorf("an empty list prints %q and says %q, want nothing, and that there is none", nothing.out, nothing.err)
	}
}

// TestRecordsComeBackAsStored: JSON that was given as JSON keeps its spaces, order and numbers, on its way in and out.
func TestRecordsComeBackAsStored(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("raw-node")
	c.module("raw-module")
	const provisioning = `{"b": 1.20,  "a": "<x>", "n": 1e5}`
	c.ok("assign", "raw-node", "raw-module", "--package", "x@1", "--provisioning", provisioning)
	for _, args := range [][]string{
		{"get", "assignment", "raw-node", "raw-module"}, {"get", "assignments", "--node", "raw-node"}, {"history", "assignment", "raw-node", "raw-module"},
	} {
		if found := c.ok(append(args, "-o", "json")...).out; !strings.Contains(found, `"provisioning":`+provisioning) {
			t.Errorf("%q printed %s, want the provisioning byte for byte: %s", args, found, provisioning)
		}
	}
}

// TestPages: pages put together are the list, and the cursor that a page tells is what gets the next one.
func TestPages(t *testing.T) {
	t.Parallel()
	c := on(t)
	names := []string{"page-1", "page-2", "page-3", "page-4", "page-5"}
	c.module("page")
	for _, n := range names {
		c.node(n)
		c.ok("assign", n, "page", "--package", "page@1", "--wait=false")
	}
	c.ok("send", "freeze", "declare", "--data", `{"name":"page"}`) // waits until all before it can be read
	var found []string
	args := []string{"get", "assignments", "--module", "page", "-o", "json", "--limit", "2"}
	for range names {
		page := c.ok(args...)
		var records []chain.Assignment
		if err := json.Unmarshal([]byte(page.out), &records); err != nil {
			t.Fatal(err)
		}
		if len(records) > 2 {
			t.Fatalf("a page of %d records, want at most 2", len(records))
		}
		for _, r := range records {
			found = append(found, r.Node)
		}
		_, cursor, more := strings.Cut(page.err, "--cursor ")
		if !more {
			break
		}
		args = append(args[:8:8], "--cursor", strings.TrimSpace(cursor))
	}
	if diff := cmp.Diff(names, found); diff != "" {
		t.Errorf("pages (-want +found):\n%s", diff)
	}
}
