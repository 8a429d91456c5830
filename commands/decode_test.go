package commands_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
)

// plainJSON writes JSON as a careful sender does: raw JSON stays as it is.
func plainJSON(t testing.TB, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func packed(t testing.TB, v any) []byte {
	t.Helper()
	body, err := es.Msgpack{}.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func digest(t testing.TB, p es.Payload) string {
	t.Helper()
	d, err := commands.Commands().Digest(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refused demands a refusal with status invalid, and returns it.
func refused(t *testing.T, err error, code string) *es.Refusal {
	t.Helper()
	var r *es.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want the refusal %s", err, code)
	}
	if r.Status != es.StatusInvalid || r.Code != code {
		t.Fatalf("got %v, want invalid (%s)", r, code)
	}
	return r
}

func TestEveryCommandHasASample(t *testing.T) {
	t.Parallel()
	sampled := map[string]bool{}
	for _, p := range samples() {
		sampled[p.Ref().Aggregate+" "+p.Verb()] = true
	}
	for _, v := range commands.Commands().Verbs() {
		if !sampled[v.Aggregate+" "+v.Verb] {
			t.Errorf("%s %s has no sample", v.Aggregate, v.Verb)
		}
		delete(sampled, v.Aggregate+" "+v.Verb)
	}
	for name := range sampled {
		t.Errorf("%s has a sample but is no command of the bus", name)
	}
}

func TestDecodeGivesWhatWasSent(t *testing.T) {
	t.Parallel()
	r := commands.Commands()
	for _, want := range samples() {
		t.Run(fmt.Sprintf("%T", want), func(t *testing.T) {
			t.Parallel()
			// JSON is decoded from its compact form, so the raw JSON of the sample has to be compact for the comparison.
			fromJSON, err := r.Decode(want.Ref().Aggregate, want.Verb(), "", plainJSON(t, want))
			if err != nil {
				t.Fatal(err)
			}
			fromMsgpack, err := r.Decode(want.Ref().Aggregate, want.Verb(), dispatch.ContentTypeMsgpack, packed(t, want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, fromMsgpack); diff != "" {
				t.Errorf("msgpack (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, fromJSON, cmp.Comparer(sameJSON)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func sameJSON(a, b events.Raw) bool {
	var va, vb any
	return json.Unmarshal(a, &va) == nil && json.Unmarshal(b, &vb) == nil && cmp.Equal(va, vb)
}

func TestDigestDoesNotDependOnTheFormat(t *testing.T) {
	t.Parallel()
	r := commands.Commands()
	for _, p := range samples() {
		body := plainJSON(t, p)
		fromJSON, err := r.Decode(p.Ref().Aggregate, p.Verb(), "application/json; charset=utf-8", body)
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Decode(p.Ref().Aggregate, p.Verb(), dispatch.ContentTypeMsgpack, packed(t, fromJSON))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := digest(t, fromJSON), digest(t, again); a != b {
			t.Errorf("%T: JSON gives %s, msgpack %s", p, a, b)
		}
		// White space, and the order of the fields, are no part of a payload.
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			t.Fatal(err)
		}
		spaced, err := json.MarshalIndent(fields, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc([]string{"manifest", "provisioning", "event", "strategy", "head"}, func(raw string) bool { return fields[raw] != nil }) {
			continue // kept byte for byte, white space and all
		}
		loose, err := r.Decode(p.Ref().Aggregate, p.Verb(), "", spaced)
		if err != nil {
			t.Fatal(err)
		}
		if digest(t, fromJSON) != digest(t, loose) {
			t.Errorf("%T: white space changes the digest", p)
		}
	}
}

func TestRawJSONIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	raw := `{ "a" : [ 1.20, 0362525e0 , null ],"a":"\ud800", "é":"\u00e9<>" }`
	raw = strings.ReplaceAll(raw, "0362525e0", "3e5")
	body := `{"node":"n1","module":"web","artifact":"sha256:1","provisioning": ` + raw + ` }`
	p, err := commands.Commands().Decode("assignment", "assign", "", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.(commands.Assign).Provisioning); got != raw {
		t.Errorf("got  %s\nwant %s", got, raw)
	}
}

// TestTextIsText covers case D10 at the bus.
func TestTextIsText(t *testing.T) {
	t.Parallel()
	r := commands.Commands()
	for _, version := range []string{"4651090", "1.20", "0362525", "1e5", "true", "null", "012", "NaN"} {
		body := fmt.Sprintf(`{"node":"n1","module":"web","package":{"name":"web","version":%q}}`, version)
		p, err := r.Decode("assignment", "assign", "", []byte(body))
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if got := p.(commands.Assign).Package.Version; got != version {
			t.Errorf("%s came back as %s", version, got)
		}
	}
}

// TestEveryFieldOfEveryCommand covers case F09: each field in turn null, 1, "x", [] and {}. Whatever is not what the field
// holds is refused as invalid and names the field, in JSON and in msgpack.
func TestEveryFieldOfEveryCommand(t *testing.T) {
	t.Parallel()
	r := commands.Commands()
	wrong := map[string]any{"null": nil, "1": 1, `"x"`: "x", "[]": []any{}, "{}": map[string]any{}}
	fits := map[string][]string{
		"text":                                {`"x"`},
		"true or false":                       {},
		"a whole number":                      {"1"},
		"a whole number, not below zero":      {"1"},
		"a time such as 2026-05-01T12:00:00Z": {},
		"JSON":                                {"1", `"x"`, "[]", "{}"},
		"a list":                              {"[]"},
		"an object":                           {"{}"},
	}
	for _, p := range samples() {
		aggregate, verb := p.Ref().Aggregate, p.Verb()
		var fields []commands.Field
		for _, v := range r.Verbs() {
			if v.Aggregate == aggregate && v.Verb == verb {
				fields = v.Fields
			}
		}
		eachField(fields, nil, func(path []string, f commands.Field) {
			for name, v := range wrong {
				body := replaced(t, p, path, v)
				_, err := r.Decode(aggregate, verb, "", plainJSON(t, body))
				label := fmt.Sprintf("%s %s: %s = %s", aggregate, verb, strings.Join(path, "."), name)
				if has(fits[f.Type], name) {
					// The type fits; what it says may still be refused, but then by status invalid.
					var refusal *es.Refusal
					if err != nil && (!errors.As(err, &refusal) || refusal.Status != es.StatusInvalid) {
						t.Errorf("%s: %v", label, err)
					}
					continue
				}
				mustName(t, label, err, f.Name)
				if f.Type == "JSON" {
					continue // it comes as bytes in msgpack
				}
				packedBody, packErr := msgpack.Marshal(body)
				if packErr != nil {
					t.Fatal(packErr)
				}
				_, err = r.Decode(aggregate, verb, dispatch.ContentTypeMsgpack, packedBody)
				var refusal *es.Refusal
				if !errors.As(err, &refusal) || refusal.Status != es.StatusInvalid {
					t.Errorf("%s in msgpack: %v", label, err)
				}
			}
		})
	}
}

func mustName(t *testing.T, label string, err error, field string) {
	t.Helper()
	var refusal *es.Refusal
	switch {
	case !errors.As(err, &refusal) || refusal.Status != es.StatusInvalid:
		t.Errorf("%s: got %v, want a refusal as invalid", label, err)
	case !strings.Contains(refusal.Message, field):
		t.Errorf("%s: the refusal does not name the field: %v", label, refusal)
	}
}

func has(list []string, v string) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func eachField(fields []commands.Field, path []string, visit func([]string, commands.Field)) {
	for _, f := range fields {
		at := append(append([]string{}, path...), f.Name)
		visit(at, f)
		eachField(f.Fields, at, visit)
	}
}

// replaced gives a payload's fields with one of them replaced; in lists the first item counts.
func replaced(t *testing.T, p es.Payload, path []string, v any) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(plainJSON(t, p), &body); err != nil {
		t.Fatal(err)
	}
	at := body
	for _, name := range path[:len(path)-1] {
		switch next := at[name].(type) {
		case map[string]any:
			at = next
		case []any:
			at = next[0].(map[string]any)
		default:
			below := map[string]any{}
			at[name], at = below, below
		}
	}
	at[path[len(path)-1]] = v
	return body
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const assign = `"node":"n1","module":"web","artifact":"sha256:1"`
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	cases := []struct {
		name, contentType, body string
		code                    string
		says                    []string
	}{
		{"nothing", "", "", commands.CodeEmptyBody, []string{"assignment assign", "node", "module", "provisioning"}},
		{"blanks", "", " \n", commands.CodeEmptyBody, nil},
		{"nothing in msgpack", "application/msgpack", "", commands.CodeEmptyBody, nil},
		{"another content type", "text/plain", "{}", commands.CodeContentType, []string{"text/plain", "application/json"}},
		{"a broken content type", ";;", "{}", commands.CodeContentType, nil},
		{"no JSON", "", "hello", commands.CodeMalformed, []string{"not JSON"}},
		{"half a body", "", `{"node":"n1"`, commands.CodeMalformed, []string{"12 bytes"}},
		{"invalid UTF-8", "", "{\"node\":\"\xff\"}", commands.CodeMalformed, []string{"UTF-8"}},
		{"half a surrogate pair", "", `{"node":"\ud800","module":"web","artifact":"a"}`, commands.CodeBadText, []string{"node", "surrogate"}},
		{"the other half", "", `{"node":"\udc00","module":"web","artifact":"a"}`, commands.CodeBadText, []string{"node"}},
		{"two high halves", "", `{"node":"\ud800\ud800","module":"web","artifact":"a"}`, commands.CodeBadText, []string{"node"}},
		{"a second body", "", `{` + assign + `} {}`, commands.CodeTrailingData, []string{"byte 50"}},
		{"a list", "", `[]`, commands.CodeWrongType, []string{"the body", "a list"}},
		{"null", "", `null`, commands.CodeWrongType, []string{"the body", "null"}},
		{"an unknown field", "", `{` + assign + `,"moduel":"x"}`, commands.CodeUnknownField, []string{"moduel", "node, module, artifact, package, build, commit, provisioning, reason"}},
		{"an unknown field below", "", `{"node":"n1","module":"web","package":{"nmae":"x"}}`, commands.CodeUnknownField, []string{"package", "nmae", "name, version"}},
		{"another case", "", `{` + assign + `,"Reason":"x"}`, commands.CodeUnknownField, []string{"Reason"}},
		{"a field twice", "", `{` + assign + `,"node":"n2"}`, commands.CodeDuplicateField, []string{"node"}},
		{"a field twice, once escaped", "", `{` + assign + `,"\u006eode":"n2"}`, commands.CodeDuplicateField, []string{"node"}},
		{"null in a field", "", `{` + assign + `,"reason":null}`, commands.CodeNullField, []string{"reason", "leave it out"}},
		{"null as raw JSON", "", `{` + assign + `,"provisioning":null}`, commands.CodeNullField, []string{"provisioning"}},
		{"deep raw JSON", "", `{` + assign + `,"provisioning":` + deep + `}`, commands.CodeTooDeep, []string{"64"}},
		{"a deep body", "", deep, commands.CodeTooDeep, []string{"64"}},
		{"very deep", "", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), commands.CodeTooDeep, nil},
		{"deeper than JSON may be", "", strings.Repeat("[", 1<<20), commands.CodeMalformed, nil},
		{"deep msgpack", "application/msgpack", strings.Repeat("\x91", 1<<20), commands.CodeTooDeep, nil},
		{"a lying length", "application/msgpack", "\xdd\xff\xff\xff\xff", commands.CodeMalformed, []string{"5 bytes"}},
		{"a lying text", "application/msgpack", "\x81\xdb\xff\xff\xff\xff", commands.CodeMalformed, nil},
		{"a field that is no text", "application/msgpack", "\x81\x01\x01", commands.CodeMalformed, []string{"name of a field"}},
		{"trailing msgpack", "application/msgpack", "\x80\x80", commands.CodeTrailingData, nil},
		{"an unknown extension", "application/msgpack", "\xd4\x05\x00", commands.CodeMalformed, []string{"extension"}},
		{"the unused byte", "application/msgpack", "\xc1", commands.CodeMalformed, []string{"0xc1"}},
	}
	r := commands.Commands()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := r.Decode("assignment", "assign", c.contentType, []byte(c.body))
			refusal := refused(t, err, c.code)
			for _, s := range c.says {
				if !strings.Contains(refusal.Error(), s) {
					t.Errorf("%q does not say %q", refusal.Error(), s)
				}
			}
		})
	}
}

func TestDecodeRefusesUnknownCommands(t *testing.T) {
	t.Parallel()
	r := commands.Commands()
	_, err := r.Decode("assignement", "assign", "", []byte("{}"))
	if hint := refused(t, err, commands.CodeUnknownCommand).Hint; !strings.Contains(hint, "assignment, build, commit") {
		t.Errorf("the hint does not list the aggregates: %s", hint)
	}
	_, err = r.Decode("assignment", "asign", "", []byte("{}"))
	if hint := refused(t, err, commands.CodeUnknownCommand).Hint; !strings.Contains(hint, "assign, move, observe, pend, unassign") {
		t.Errorf("the hint does not list the commands: %s", hint)
	}
	// A writer's start is nothing that anybody may send.
	_, err = r.Decode("writer", "start", "", []byte(`{"id":"w1","program":"1","rules":1}`))
	refused(t, err, commands.CodeUnknownCommand)
}

// TestFieldSizes covers case D12 for a single field: the body may be that large, but no part of it.
func TestFieldSizes(t *testing.T) {
	t.Parallel()
	r := commands.Commands()
	for _, size := range []int{commands.MaxTextBytes + 1, dispatch.MaxBodyBytes} {
		body := `{"node":"n1","module":"web","artifact":"a","reason":"` + strings.Repeat("x", size) + `"}`
		_, err := r.Decode("assignment", "assign", "", []byte(body))
		refusal := refused(t, err, commands.CodeTooLarge)
		for _, n := range []int{size, commands.MaxTextBytes} {
			if !strings.Contains(refusal.Message, fmt.Sprint(n)) {
				t.Errorf("%q does not name %d", refusal.Message, n)
			}
		}
	}
}

func TestTimesAreReadAsUTC(t *testing.T) {
	t.Parallel()
	r := commands.Commands()
	want := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	body := `{"repository":"r","commit":"c","merged":"2026-05-01T12:00:00+02:00"}`
	p, err := r.Decode("commit", "record", "", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.(commands.RecordCommit).Merged; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, at := range map[string]time.Time{
		"seconds": want, "with nanoseconds": want.Add(5), "before 1970": time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		p, err := r.Decode("commit", "record", dispatch.ContentTypeMsgpack, packed(t, commands.RecordCommit{Repository: "r", Commit: "c", Merged: at.In(time.FixedZone("x", 3600))}))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.(commands.RecordCommit).Merged; got != at {
			t.Errorf("%s: got %v, want %v", name, got, at)
		}
	}
	_, err = r.Decode("commit", "record", "", []byte(`{"repository":"r","commit":"c","merged":"yesterday"}`))
	refused(t, err, commands.CodeBadValue)
}

// FuzzDecode looks for a body that is not answered by a payload or a refusal, or that means one thing in JSON and another
// in msgpack.
func FuzzDecode(f *testing.F) {
	r := commands.Commands()
	verbs := r.Verbs()
	index := map[string]int{}
	for i, v := range verbs {
		index[v.Aggregate+" "+v.Verb] = i
	}
	for _, p := range samples() {
		i := index[p.Ref().Aggregate+" "+p.Verb()]
		f.Add(i, false, plainJSON(f, p))
		f.Add(i, true, packed(f, p))
	}
	f.Fuzz(func(t *testing.T, i int, packedBody bool, body []byte) {
		v := verbs[uint(i)%uint(len(verbs))]
		contentType := ""
		if packedBody {
			contentType = dispatch.ContentTypeMsgpack
		}
		p, err := r.Decode(v.Aggregate, v.Verb, contentType, body)
		if err != nil {
			var refusal *es.Refusal
			if !errors.As(err, &refusal) || refusal.Status != es.StatusInvalid || refusal.Code == "" || refusal.Message == "" {
				t.Fatalf("%#v is no refusal of a malformed command", err)
			}
			return
		}
		if p.Ref().Aggregate != v.Aggregate || p.Verb() != v.Verb || p.Ref().Key == "" {
			t.Fatalf("%s %s became %v %s", v.Aggregate, v.Verb, p.Ref(), p.Verb())
		}
		again, err := r.Decode(v.Aggregate, v.Verb, dispatch.ContentTypeMsgpack, packed(t, p))
		if err != nil {
			t.Fatalf("a payload in its canonical form is refused: %v", err)
		}
		if digest(t, p) != digest(t, again) {
			t.Fatalf("the digest depends on the format: %#v, %#v", p, again)
		}
	})
}
