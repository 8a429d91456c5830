package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
)

func knownVerbs() []commands.Verb { return commands.Commands().Verbs() }

// TestD01 is case D01, and of case D02 the names that work: register, assign, list, history, by the command line.
func TestD01(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	names := []string{"d01 a~b", "d01 a:b", "d01 a@b", "node ä", "節点", "🚀", "d02.a..b", ".a", "a.", ".", "..", "a/b", `quo"te`, "-d01", "=41", "%20", "*", ">", "a\\b"}
	inParallel(names, func(name string) {
		c.node(name)
		c.module(name)
		c.must(0, "assign", "--package", name+"@1.20", "--", name, name)
		got := read[chain.Assignment](c, "get", "assignment", "--", name, name)
		if got.Node != name || got.Module != name || got.Package.Name != name || got.Package.Version != "1.20" {
			t.Errorf("%q reads %+v", name, got)
		}
		if h := read[[]change](c, "history", "assignment", "--", name, name); len(h) != 1 || h[0].Value.Node != name {
			t.Errorf("%q has the history %+v", name, h)
		}
		if list := read[[]chain.Assignment](c, "get", "assignments", "--node="+name); len(list) != 1 || list[0].Module != name {
			t.Errorf("%q lists %+v", name, list)
		}
		c.must(0, "unassign", "--", name, name)
	})
}

// TestD02AndD07 is case D02, the name that is refused, and case D07: names that can't be told apart on a screen.
func TestD02AndD07(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	for name, want := range map[string]string{
		"": "empty", "a\u00a0b": "U+00A0", "a\u200bb": "U+200B", "cafe\u0301": "normal form C ([U+0065 U+0301]", "a\tb": "U+0009", "a\x00b": "U+0000", "\u202eabc": "U+202E",
	} {
		body, err := json.Marshal(map[string]string{"node": name})
		if err != nil {
			t.Fatal(err)
		}
		got := c.must(2, "send", "node", "register", "--data", string(body))
		if said := got.out + got.err; !strings.Contains(strings.ToUpper(said), strings.ToUpper(want)) {
			t.Errorf("%q is refused with %s, want %s in it", name, said, want)
		}
	}
	c.node("caf\u00e9") // composed
}

// TestD10 is case D10: versions come back byte for byte, whether they came by file, command line or bus.
func TestD10(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	client := dispatch.NewClient(connect(t, shared.url))
	versions := []string{"4651090", "1.20", "0362525", "1e5", "true", "null", "012", "NaN"}
	var rows []string
	for _, by := range []string{"line", "bus", "file"} {
		c.node("d10-" + by)
	}
	c.module("d10")
	for i, v := range versions {
		c.must(0, "assign", "d10-line", "d10", "--package", "d10@"+v)
		if a, err := client.Send(t.Context(), assign("d10-bus", "d10", v, dispatch.Options{})); err != nil || a.Status != es.StatusAccepted {
			t.Errorf("%s by the bus: %+v, %v", v, a, err)
		}
		rows = append(rows, fmt.Sprintf(`{"t":"2026-05-01T00:00:0%dZ","env":"d10-file-%d","app":"d10","kind":"add","new":%q}`, i, i, v))
	}
	if got := c.feed(strings.Join(rows, "\n"), "import", "deliveries", "-", "--source", "d10"); got.code != 0 {
		t.Errorf("the import: %+v", got)
	}
	for _, by := range []string{"line", "bus"} {
		if diff := cmp.Diff(versions, versionsOf(read[[]change](c, "history", "assignment", "d10-"+by, "d10"))); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
	}
	for i, v := range versions {
		if got := read[chain.Assignment](c, "get", "assignment", fmt.Sprintf("d10-file-%d", i), "d10"); got.Package.Version != v {
			t.Errorf("by file: %+v, want %s", got, v)
		}
		if yaml := c.must(0, "get", "assignment", fmt.Sprintf("d10-file-%d", i), "d10", "-o", "yaml").out; !strings.Contains(yaml, fmt.Sprintf("version: %q\n", v)) {
			t.Errorf("as YAML, %s is no text:\n%s", v, yaml)
		}
	}
}

// TestD11 is case D11: a name of 5,000 characters is refused, and the connection lives.
func TestD11(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	long := strings.Repeat("n", 5000)
	for _, args := range [][]string{
		{"send", "node", "register", "--data", `{"node":"` + long + `"}`},
		{"assign", long, "web", "--package", "web@1"},
		{"get", "assignment", long, "web"},
	} {
		if got := c.must(2, args...); !strings.Contains(got.err, "255") {
			t.Errorf("%.40q is refused with %s, want the limit in it", args, got.err)
		}
	}
	nc := connect(t, shared.url)
	client := dispatch.NewClient(nc)
	body := []byte(`{"node":"` + long + `"}`)
	for range 2 { // over one connection
		if a, err := client.Send(t.Context(), dispatch.Request{Aggregate: "node", Verb: "register", Body: body}); err != nil || a.Status != es.StatusInvalid {
			t.Errorf("by the bus: %+v, %v", a, err)
		}
	}
	if !nc.IsConnected() || nc.Stats().Reconnects > 0 {
		t.Error("the connection was lost over a name")
	}
}

// TestD12 is case D12: bodies of 1 MiB, 1 MiB and a byte, and 5 MiB are refused with limit and size, and change nothing.
func TestD12(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	c := on(t, shared)
	client := dispatch.NewClient(connect(t, shared.url))
	for _, size := range []int{mebibyte, mebibyte + 1, 5 * mebibyte} {
		head, tail := `{"node":"d12","module":"d12","reason":"`, `"}`
		body := head + strings.Repeat("x", size-len(head)-len(tail)) + tail
		a, err := client.Send(t.Context(), dispatch.Request{Aggregate: "assignment", Verb: "assign", Body: []byte(body)})
		said := fmt.Sprint(err)
		if err == nil {
			said = a.Error.Message
		}
		if a.Status == es.StatusAccepted || !strings.Contains(said, fmt.Sprint(size)) || !strings.Contains(said, fmt.Sprint(dispatch.MaxBodyBytes)) {
			t.Errorf("%d bytes by the bus: %s %q, want limit and size", size, a.Status, said)
		}
		got := c.feed(body, "send", "assignment", "assign", "--data", "-")
		if said := got.out + got.err; got.code != 2 || !strings.Contains(said, fmt.Sprint(size)) {
			t.Errorf("%d bytes by the command line: exit code %d, %.300s", size, got.code, said)
		}
	}
	c.must(4, "get", "assignment", "d12", "d12")
	c.must(4, "get", "node", "d12")
}

// TestF01 is case F01: requests whose reply is an event's subject or a bucket's key leave stream and buckets as they were.
func TestF01(t *testing.T) {
	t.Parallel()
	process := up(t, filepath.Join(t.TempDir(), "store"), "127.0.0.1:0", "interval")
	c := on(t, process)
	c.node("f01")
	c.module("f01")
	c.must(0, "assign", "f01", "f01", "--package", "f01@1")
	before := c.must(0, "get", "assignments", "--all", "-o", "json").out
	nc := connect(t, process.url)
	for _, reply := range []string{"evt.assignment.f01.f01", "evt.node.f01", "$KV.chain-assignments.f01.f01", "$KV.catenary-actors.x", "catenary.cmd.node.retire", "LEDGER.API.STREAM.DELETE.CATENARY", "$JS.API.STREAM.DELETE.KV_chain-assignments"} {
		for _, subject := range []string{"catenary.cmd.assignment.assign", "catenary.query.position", "$SRV.INFO", "$JS.API.INFO", "$JS.API.STREAM.INFO.KV_chain-assignments", "$JS.API.STREAM.MSG.GET.KV_chain-assignments"} {
			m := nats.NewMsg(subject)
			m.Reply = reply
			m.Data = []byte(`{"node":"nowhere","module":"f01","package":{"name":"f01","version":"1"}}`)
			if err := nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// A command through the same connection is decided after all of them.
	a, err := dispatch.NewClient(nc).Send(t.Context(), assign("f01", "f01", "1", dispatch.Options{}))
	if err != nil || a.Status != es.StatusUnchanged {
		t.Fatalf("%+v, %v", a, err)
	}
	// The writer's start, and three commands.
	var events []struct{ Sequence uint64 }
	if events = read[[]struct{ Sequence uint64 }](c, "log", "--events"); len(events) != 4 {
		t.Errorf("%d events stand, want 4", len(events))
	}
	if after := c.must(0, "get", "assignments", "--all", "-o", "json").out; after != before {
		t.Errorf("assignments were %s and are %s", before, after)
	}
	c.must(0, "verify")
}
