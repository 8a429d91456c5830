package chain_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/chain"
	"catenary/events"
)

// forEachKind runs a test for every type of record.
func forEachKind(t *testing.T, run map[string]func(*testing.T)) {
	t.Helper()
	for name, test := range run {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func TestEncodeGivesBackEveryRecordByteForByte(t *testing.T) {
	t.Parallel()
	forEachKind(t, map[string]func(*testing.T){
		"module": roundTrip[chain.Module], "node": roundTrip[chain.Node], "commit": roundTrip[chain.Commit],
		"build": roundTrip[chain.Build], "published": roundTrip[chain.Published],
		"assignment": roundTrip[chain.Assignment], "freeze": roundTrip[chain.Freeze],
		"merge": roundTrip[chain.Merge], "track": roundTrip[chain.Track], "strategy": roundTrip[chain.Strategy],
		"rollout": roundTrip[chain.Rollout], "step": roundTrip[chain.Step],
	})
}

func roundTrip[T any](t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := record[T]().Draw(t, "record")
		data, err := chain.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) {
			t.Fatalf("not JSON: %s", data)
		}
		got, err := chain.Decode[T](data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("decoded (-want +got):\n%s\nfrom %s", diff, data)
		}
		again, err := chain.Encode(got)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, again) {
			t.Fatalf("two forms of one record:\n%s\n%s", data, again)
		}
	})
}

func TestEncodeSplicesRawFieldsIn(t *testing.T) {
	t.Parallel()
	given := events.Raw("{ \"b\": 1.50,\n\t\"a\": \"<&>\" }\n")
	at := time.Date(2026, 5, 7, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		encode func() ([]byte, error)
		want   string
	}{
		"provisioning": {
			func() ([]byte, error) {
				return chain.Encode(chain.Assignment{Node: "n1", Module: `{"":0}`, Provisioning: given, Since: at})
			},
			`{"node":"n1","module":"{\"\":0}","provisioning":` + string(given) + `,"since":"2026-05-07T10:00:00Z"}`,
		},
		"manifest": {
			func() ([]byte, error) { return chain.Encode(chain.Build{ID: "b1", Manifest: given, At: at}) },
			`{"id":"b1","manifest":` + string(given) + `,"at":"2026-05-07T10:00:00Z"}`,
		},
		"a raw field that looks like what stands for one": {
			func() ([]byte, error) { return chain.Encode(chain.Build{ID: "b1", Manifest: events.Raw(`{"":0}`)}) },
			`{"id":"b1","manifest":{"":0}}`,
		},
		"text without escapes": {
			func() ([]byte, error) { return chain.Encode(chain.Freeze{Name: "a<b>&c", Reason: "節点 🚢"}) },
			`{"name":"a<b>&c","reason":"節点 🚢"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.encode()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeLeavesTheCallersRecordAlone(t *testing.T) {
	t.Parallel()
	a := chain.Assignment{Node: "n1", Module: "web", Provisioning: events.Raw(`{"a": 1}`)}
	if _, err := chain.Encode(a); err != nil {
		t.Fatal(err)
	}
	if got := string(a.Provisioning); got != `{"a": 1}` {
		t.Errorf("the record's own provisioning became %s", got)
	}
}

func TestEncodeRefusesWhatWouldNotComeBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record chain.Assignment
		says   string
	}{
		"text that is not UTF-8":      {chain.Assignment{Node: "n\xff1"}, "not valid UTF-8"},
		"such text after backslashes": {chain.Assignment{Node: "\\\\\xff"}, "not valid UTF-8"},
		"a raw field that is not JSON": {
			chain.Assignment{Node: "n1", Provisioning: events.Raw(`{"a":`)}, "provisioning is not JSON",
		},
		"a raw field that would add fields": {
			chain.Assignment{Node: "n1", Provisioning: events.Raw(`1,"build":"b9"`)}, "provisioning is not JSON",
		},
		"a year of five digits": {chain.Assignment{Node: "n1", Since: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "year"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chain.Encode(c.record)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("gave %s and error %v, want one that says %q", got, err, c.says)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	t.Run("passes over fields of a newer program", func(t *testing.T) {
		t.Parallel()
		a, err := chain.Decode[chain.Assignment]([]byte(`{"node":"n1","later":{"x":[1]},"module":"web","provisioning":{"a": 1},"also":2}`))
		if err != nil {
			t.Fatal(err)
		}
		want := chain.Assignment{Node: "n1", Module: "web", Provisioning: events.Raw(`{"a": 1}`)}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	})
	for _, broken := range []string{``, `{`, `[]`, `"n1"`, `{"node":1}`, `{"node":"n1"} x`, `{"since":"yesterday"}`} {
		t.Run("refuses "+broken, func(t *testing.T) {
			t.Parallel()
			if a, err := chain.Decode[chain.Assignment]([]byte(broken)); err == nil {
				t.Errorf("gave %+v without an error", a)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"node":"n1","module":"web","provisioning": {"a": 1} }`))
	f.Add([]byte(`{"provisioning":"}"}`))
	f.Add([]byte(`{"PROVISIONING":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := chain.Decode[chain.Assignment](data)
		if err != nil {
			return
		}
		// What can be read can be written again, but for times that JSON has no form for, and reads the same then.
		encoded, err := chain.Encode(first)
		if err != nil {
			t.Fatalf("read %q but can't write it: %v", data, err)
		}
		second, err := chain.Decode[chain.Assignment](encoded)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := chain.Encode(second); err != nil || !bytes.Equal(encoded, again) {
			t.Fatalf("%q reads as %s and then as %s (%v)", data, encoded, again, err)
		}
	})
}

// TestRecordsKeepTheirForm pins the JSON of each record with all of its fields set: names and order are contracts.
func TestRecordsKeepTheirForm(t *testing.T) {
	t.Parallel()
	forEachKind(t, map[string]func(*testing.T){
		"module": form[chain.Module], "node": form[chain.Node], "commit": form[chain.Commit], "build": form[chain.Build],
		"published": form[chain.Published], "assignment": form[chain.Assignment], "freeze": form[chain.Freeze],
		"merge": form[chain.Merge], "track": form[chain.Track], "strategy": form[chain.Strategy],
		"rollout": form[chain.Rollout], "step": form[chain.Step],
		"change": form[chain.Change[chain.Assignment]],
	})
}

func form[T any](t *testing.T) {
	var r T
	n := 0
	full(t, reflect.ValueOf(&r).Elem(), "", &n)
	encode := func() ([]byte, error) { return chain.Encode(r) }
	if c, ok := any(r).(interface{ JSON() ([]byte, error) }); ok {
		encode = c.JSON
	}
	got, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Base(t.Name()), got)
}

// full sets every field to a value that tells its own name or its place.
func full(t *testing.T, v reflect.Value, name string, n *int) {
	*n++
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 5, 7, 10, 0, *n, 0, time.UTC)))
		return
	case reflect.TypeFor[events.Raw]():
		v.Set(reflect.ValueOf(events.Raw(`{ "` + name + `": 1.0 }`)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			full(t, v.Field(i), v.Type().Field(i).Name, n)
		}
	case reflect.String:
		v.SetString("the " + strings.ToLower(name))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(t, v.Elem(), name, n)
	case reflect.Slice:
		if name == "Raw" { // of a change: left out, so that the value is shown
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		full(t, v.Index(0), name, n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"b": "2", "a": "1"}))
	default:
		t.Fatalf("no value for a field of type %v", v.Type())
	}
}

// golden compares with testdata/golden/<name>.json. With -update it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".json")
	got = append(bytes.Clone(got), '\n')
	if f := flag.Lookup(updateFlag); f.Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}

const updateFlag = "update"

func TestMain(m *testing.M) {
	if flag.Lookup(updateFlag) == nil { // a harness may have it too
		flag.Bool(updateFlag, false, "rewrite golden files")
	}
	os.Exit(m.Run())
}
