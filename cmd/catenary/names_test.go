package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
)

// TestNames is case D01 over the command line: any name a person uses works as a node, a module and in every read.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"a~b", "a:b", "a@b", "node ä", "節点", "🚀", "a.b", "a/b", "a=2Eb", "*", ">", "$x", "-dash", "--node", "it's", `"quoted"`, "100%", "a+b", "a..b", ".a", "a.", ".", "..",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := on(t)
			node, module := "n "+name, name
			c.node(node)
			c.module(module)
			// After -- nothing is a flag.
			c.ok("assign", "--package", name+"@1.0", "--", node, module)
			a := read[chain.Assignment](c, "get", "assignment", "--", node, module)
			if a.Node != node || a.Module != module || a.Package == nil || a.Package.Name != name || a.Package.Version != "1.0" {
				t.Errorf("assignment is %+v, want %s on %s", a, module, node)
			}
			if found := read[[]chain.Assignment](c, "get", "assignments", "--node", node, "--module="+module); len(found) != 1 {
				t.Errorf("the list has %+v, want one", found)
			}
			if found := read[[]json.RawMessage](c, "history", "assignment", "--", node, module); len(found) != 1 {
				t.Errorf("the history has %d values, want one", len(found))
			}
			if found := c.ok("get", "nodes", "-o", "name", "--", node).out; found != node+"\n" {
				t.Errorf("the node's name is %q, want %q", found, node)
			}
			key := strings.TrimSpace(c.ok("get", "assignments", "--node", node, "-o", "name").out)
			if found := read[[]chain.Assignment](c, "get", "assignments", key); len(found) != 1 || found[0].Node != node {
				t.Errorf("the key %s gives %+v, want the assignment", key, found)
			}
			type item struct{ Key string }
			if found := read[[]item](c, "log", "--aggregate", "module", "--key="+name); !slices.Contains(found, item{es.Key(name)}) {
				t.Errorf("the log has %+v for the module, want its event", found)
			}
			if found := read[audit.AsOfAnswer](c, "as-of", "now", "--node="+node, "--module="+name); len(found.Assignments) != 1 || found.Assignments[0].Module != name {
				t.Errorf("as-of has %+v, want the assignment", found)
			}
			if found := read[audit.BlameAnswer](c, "blame", "--", node, module); found.Node != node || found.Module != module || !found.Stands {
				t.Errorf("blame has %+v, want the assignment", found)
			}
			// Whatever slashes the names have: every way to part them is tried.
			if found := read[audit.TraceAnswer](c, "trace", node+"/"+module); len(found.Assignments) != 1 || found.Assignments[0].Node != node {
				t.Errorf("trace has %+v, want the assignment", found)
			}
			if found := read[audit.TraceAnswer](c, "trace", "--as", "package", "--", name+"@1.0"); len(found.Assignments) != 1 {
				t.Errorf("trace of the package has %+v, want the assignment", found)
			}
			if found := c.ok("get", "assignments", "--node", node).out; !strings.Contains(found, node) {
				t.Errorf("the table does not show the node:\n%s", found)
			}
		})
	}
}

// TestBadNames is cases D02, D07 and D11 over the command line: a clear refusal, and the chain goes on.
func TestBadNames(t *testing.T) {
	t.Parallel()
	c := on(t)
	for name, says := range map[string]string{
		"":                        "empty",
		"a\u00a0b":                "U+00A0",
		"a\u200bb":                "U+200B",
		"e\u0301":                 "normal form C",
		"a\tb":                    "U+0009",
		"a\xffb":                  "UTF-8",
		strings.Repeat("x", 5000): "255",
	} {
		found := c.must(exitUsage, "assign", "some-node", name, "--package", "p@1")
		if !strings.Contains(found.err, says) {
			t.Errorf("%.20q is refused with %q, want a word on %s", name, found.err, says)
		}
		if found := c.must(exitUsage, "get", "assignment", "some-node", name); !strings.Contains(found.err, says) {
			t.Errorf("reading %.20q is refused with %q, want a word on %s", name, found.err, says)
		}
	}
	c.ok("get", "nodes")
}

// TestVersions is case D10: versions come back byte for byte, given by flag, by data and in every format.
func TestVersions(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("versions")
	c.module("versions")
	for _, version := range []string{"4651090", "1.20", "0362525", "1e5", "true", "null", "012", "NaN", "0x1F", "1_000", "~", "2026-05-01", "yes"} {
		for _, way := range []string{"flag", "data", "stdin"} {
			body := `{"node":"versions","module":"versions","package":{"name":"` + way + `","version":"` + version + `"}}`
			switch way {
			case "flag":
				c.ok("assign", "versions", "versions", "--package", way+"@"+version)
			case "data":
				c.ok("send", "assignment", "assign", "--data", body)
			case "stdin":
				if found := c.feed(body, "send", "assignment", "assign", "--data", "-"); found.code != exitOK {
					t.Fatalf("version %s by %s: %s", version, way, found.err)
				}
			}
			a := read[chain.Assignment](c, "get", "assignment", "versions", "versions")
			if a.Package == nil || a.Package.Name != way || a.Package.Version != version {
				t.Errorf("version %s by %s came back as %+v", version, way, a.Package)
			}
			if found := c.ok("get", "assignment", "versions", "versions", "-o", "json").out; !strings.Contains(found, `"version":"`+version+`"`) {
				t.Errorf("JSON of version %s by %s is %s", version, way, found)
			}
			if found := c.ok("get", "assignment", "versions", "versions").out; !strings.Contains(found, way+"@"+version) {
				t.Errorf("the table does not show version %s by %s:\n%s", version, way, found)
			}
		}
		c.ok("record", "publication", "versions@"+version)
		found := read[chain.Published](c, "get", "publication", "versions@"+version)
		if diff := cmp.Diff(version, found.Package.Version); diff != "" {
			t.Errorf("published version (-want +found):\n%s", diff)
		}
	}
}
