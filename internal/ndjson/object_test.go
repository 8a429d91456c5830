package ndjson

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func scanned(line string) (map[string]string, error) {
	got := map[string]string{}
	err := ScanObject([]byte(line), func(name, value []byte) error {
		got[string(name)] = string(value)
		return nil
	})
	return got, err
}

func TestScanObject(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, line string
		want       map[string]string
	}{
		{"empty", `{}`, map[string]string{}},
		{"spaced", " { \"a\" : 1 ,\t\"b\":\"x\" } ", map[string]string{`"a"`: "1", `"b"`: `"x"`}},
		{"quotes and braces in strings", `{"a":"}\"{,","b":"\\"}`, map[string]string{`"a"`: `"}\"{,"`, `"b"`: `"\\"`}},
		{"nested", `{"a":{"b":[1,"]}"]},"c":[{}],"d":null,"e":-1.5e3,"f":true}`,
			map[string]string{`"a"`: `{"b":[1,"]}"]}`, `"c"`: `[{}]`, `"d"`: "null", `"e"`: "-1.5e3", `"f"`: "true"}},
		{"names are as they stand", `{"A":1,"\u0061":2}`, map[string]string{`"A"`: "1", `"\u0061"`: "2"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := scanned(c.line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScanObjectRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, line, want string }{
		{"half an object", `{"a":1`, "not JSON"},
		{"two objects", `{} {}`, "not JSON"},
		{"a list", `[1]`, "not a JSON object"},
		{"null", `null`, "not a JSON object"},
		{"bytes that are no text", "{\"a\":\"\xff\"}", "not valid UTF-8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := scanned(c.line); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"plain"`: "plain", `"a\nb\u00e9\"\\"`: "a\nbé\"\\", `"\ud83d\ude80"`: "🚀", `"🚀"`: "🚀", `"\ufffd"`: "\uFFFD", `"\\ud83d"`: `\ud83d`,
	} {
		if got, err := Text([]byte(value)); err != nil || got != want {
			t.Errorf("Text(%s) = %q, %v; want %q", value, got, err, want)
		}
	}
	for value, want := range map[string]string{
		`1.20`: "is no string", `true`: "is no string", `{}`: "is no string",
		`"\ud83d"`: "half a surrogate", `"\ud83dx"`: "half a surrogate", `"\ude80"`: "half a surrogate", `"\ud83d\n"`: "half a surrogate", `"\ud83d\ud83d\ude80"`: "half a surrogate",
	} {
		if got, err := Text([]byte(value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Text(%s) = %q, %v; want an error with %q", value, got, err, want)
		}
	}
}

// FuzzScanObject holds the scanner against encoding/json: it takes exactly the objects that are valid text, and every
// value it cuts out is the value.
func FuzzScanObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"\ud83d\ude80","b":[{"c":"]"}]}`, `{"a": 1.0e5 }`, `{"a":"`, "\xff", `[]`, ` {"t":"x" , "t":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) == 0 {
			return
		}
		want := map[string]json.RawMessage{}
		wantErr := json.Unmarshal(line, &want)
		object := wantErr == nil && want != nil && utf8.Valid(line)
		got := map[string]string{}
		err := ScanObject(line, func(name, value []byte) error {
			var key string
			if err := json.Unmarshal(name, &key); err != nil {
				t.Fatalf("name %q is no string: %v", name, err)
			}
			got[key] = string(value)
			if s, err := Text(value); err == nil {
				var std string
				if err := json.Unmarshal(value, &std); err != nil || std != s {
					t.Fatalf("Text(%s) = %q, encoding/json says %q, %v", value, s, std, err)
				}
			}
			return nil
		})
		if (err == nil) != object {
			t.Fatalf("scan says %v, encoding/json says %v", err, wantErr)
		}
		if !object {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%d members, encoding/json found %d", len(got), len(want))
		}
		for k, v := range want {
			if got[k] != string(v) {
				t.Fatalf("member %q is %q, encoding/json says %q", k, got[k], v)
			}
		}
	})
}
