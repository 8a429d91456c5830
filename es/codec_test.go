package es_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
)

type sample struct {
	Name    string            `json:"name"`
	Version string            `json:"version,omitempty"`
	Count   int               `json:"count,omitempty"`
	Big     uint64            `json:"big,omitempty"`
	On      bool              `json:"on,omitempty"`
	At      time.Time         `json:"at,omitempty,omitzero"`
	Until   *time.Time        `json:"until,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Raw     []byte            `json:"raw,omitempty"`
	Parts   []part            `json:"parts,omitempty"`
	Any     any               `json:"any,omitempty"`
}

type part struct {
	Name string      `json:"name"`
	At   time.Time   `json:"at,omitempty,omitzero"`
	All  []time.Time `json:"all,omitempty"`
}

func roundTrip(t interface{ Fatal(...any) }, in, out any) {
	body, err := es.Msgpack{}.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := (es.Msgpack{}).Unmarshal(body, out); err != nil {
		t.Fatal(err)
	}
}

// Case D10: what looks like a number, a truth or a nothing is a text all the same.
func TestTextIsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"4651090", "1.20", "0362525", "1e5", "true", "null", "012", "NaN", "", " ", "~", "\x00", "ä節🚀"} {
		in := sample{Name: text, Labels: map[string]string{text: text}, Any: []any{text}}
		var out sample
		roundTrip(t, in, &out)
		if diff := cmp.Diff(in, out); diff != "" {
			t.Errorf("%q (-in +out):\n%s", text, diff)
		}
	}
}

// Times come back as the same instant, in UTC, wherever they stand in the value (see TestMain: the local zone is another).
func TestTimesAreUTC(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at, until := instant().Draw(t, "at"), instant().Draw(t, "until")
		in := sample{At: at, Until: &until, Parts: []part{{At: at, All: []time.Time{until, at}}}, Any: at}
		var out sample
		roundTrip(t, in, &out)
		for _, got := range []struct{ want, is time.Time }{
			{at, out.At}, {until, *out.Until}, {at, out.Parts[0].At}, {until, out.Parts[0].All[0]}, {at, out.Parts[0].All[1]}, {at, out.Any.(time.Time)},
		} {
			if got.is.Location() != time.UTC || !got.is.Equal(got.want) {
				t.Fatalf("%v comes back as %v", got.want, got.is)
			}
		}
	})
}

func TestTimesInMapsAreUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.Local)
	var out map[string]any
	roundTrip(t, map[string]any{"at": at, "list": []any{at, map[string]any{"deep": at}}, "none": nil}, &out)
	want := map[string]any{"at": at.UTC(), "list": []any{at.UTC(), map[string]any{"deep": at.UTC()}}, "none": nil}
	if diff := cmp.Diff(want, out, cmp.Comparer(func(a, b time.Time) bool { return a == b })); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	var typed map[string]part
	roundTrip(t, map[string]any{"p": part{At: at}}, &typed)
	if got := typed["p"].At; got != at.UTC() {
		t.Errorf("a time in a map of structs comes back as %v", got)
	}
}

// One instant has one stored form, whatever the zone and the clock reading behind it.
func TestMarshalIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := instant().Draw(t, "at")
		labels := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels")
		in := sample{Name: odd().Draw(t, "name"), At: at, Labels: labels, Count: rapid.Int().Draw(t, "count"), Any: map[string]any{"a": 1, "b": 2, "c": 3}}
		first, err := es.Msgpack{}.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		in.At = at.UTC()
		in.Labels = map[string]string{}
		for k, v := range labels {
			in.Labels[k] = v
		}
		for range 5 {
			again, err := es.Msgpack{}.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, again) {
				t.Fatalf("%x and %x", first, again)
			}
		}
		var out sample
		if err := (es.Msgpack{}).Unmarshal(first, &out); err != nil {
			t.Fatal(err)
		}
		again, err := es.Msgpack{}.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatalf("decoded and encoded again: %x and %x", first, again)
		}
	})
}

// The encoding is a storage format.
func TestMsgpackIsPinned(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		in   any
		want string
	}{
		{"texts and numbers", sample{Name: "1.20", Count: -1, Big: 1 << 40}, "83" + "a46e616d65" + "a4312e3230" + "a5636f756e74" + "ff" + "a3626967" + "cf0000010000000000"},
		{"whole seconds", part{At: time.Unix(1_700_000_000, 0)}, "82" + "a46e616d65" + "a0" + "a26174" + "d6ff6553f100"},
		{"nanoseconds", part{At: time.Unix(1_700_000_000, 5)}, "82" + "a46e616d65" + "a0" + "a26174" + "d7ff000000146553f100"},
		{"before 1970", part{At: time.Unix(-1, 0)}, "82" + "a46e616d65" + "a0" + "a26174" + "c70cff00000000ffffffffffffffff"},
		{"sorted labels", map[string]string{"b": "2", "a": "1"}, "82" + "a161" + "a131" + "a162" + "a132"},
	}
	for _, c := range cases {
		got, err := es.Msgpack{}.Marshal(c.in)
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%s: %x (%v), want %s", c.name, got, err, c.want)
		}
	}
}

// A field added later does not stop an older program.
func TestUnmarshalIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	var out part
	roundTrip(t, map[string]any{"name": "web", "later": []any{1, map[string]any{"x": "y"}}}, &out)
	if out.Name != "web" {
		t.Errorf("read %+v", out)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"nothing": "", "a cut body": "82a46e616d65", "bytes after the end": "80c0", "another kind": "a161"} {
		raw, err := hex.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		var out part
		if err := (es.Msgpack{}).Unmarshal(raw, &out); err == nil {
			t.Errorf("%s is read as %+v", name, out)
		}
	}
}

func TestCheckTypeFindsUnsortedMaps(t *testing.T) {
	t.Parallel()
	type deep struct {
		Parts []struct {
			ByName map[string]int
		}
	}
	type loop struct {
		Next *loop
		Name string
	}
	for _, bad := range []reflect.Type{reflect.TypeFor[deep](), reflect.TypeFor[map[int]string](), reflect.TypeFor[[]map[string][]string]()} {
		if err := (es.Msgpack{}).CheckType(bad); err == nil || !strings.Contains(err.Error(), "random order") {
			t.Errorf("%v: error %v", bad, err)
		}
	}
	for _, ok := range []reflect.Type{reflect.TypeFor[sample](), reflect.TypeFor[loop](), reflect.TypeFor[map[string]bool](), reflect.TypeFor[int]()} {
		if err := (es.Msgpack{}).CheckType(ok); err != nil {
			t.Errorf("%v: %v", ok, err)
		}
	}
}
