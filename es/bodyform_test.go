package es_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
)

// The types of the tests: all that a form knows.
type (
	formPart struct {
		Name string `json:"name"`
		Size uint64 `json:"size,omitempty"`
	}
	formNamed struct {
		Text string    `json:"text,omitempty"`
		Part *formPart `json:"part,omitempty"`
	}
	formWhole struct {
		Node string `json:"node"`
		formNamed
		FormShown
		Good  bool            `json:"good,omitempty"`
		Count int             `json:"count"`
		Long  int64           `json:"long,omitempty"`
		List  []string        `json:"list,omitempty"`
		Parts []formPart      `json:"parts,omitempty"`
		Raw   json.RawMessage `json:"raw,omitempty"`
	}
	// FormShown is embedded and exported.
	FormShown struct {
		By string `json:"by,omitempty"`
	}
	formOuter struct{ formWhole }
)

func drawWhole(t *rapid.T) formOuter {
	text := rapid.OneOf(rapid.String(), rapid.StringN(30, 40, -1), rapid.StringN(300, 310, -1))
	part := rapid.Custom(func(t *rapid.T) formPart {
		return formPart{Name: text.Draw(t, "name"), Size: rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 300)).Draw(t, "size")}
	})
	var w formOuter
	w.Node, w.Text, w.By = text.Draw(t, "node"), text.Draw(t, "text"), text.Draw(t, "by")
	if rapid.Bool().Draw(t, "has a part") {
		p := part.Draw(t, "part")
		w.Part = &p
	}
	w.Good = rapid.Bool().Draw(t, "good")
	w.Count = rapid.OneOf(rapid.Int(), rapid.IntRange(-200, 70_000)).Draw(t, "count")
	w.Long = rapid.Int64().Draw(t, "long")
	if n := rapid.IntRange(0, 20).Draw(t, "texts"); n > 0 {
		w.List = rapid.SliceOfN(text, n, n).Draw(t, "list")
	}
	if n := rapid.IntRange(0, 3).Draw(t, "parts"); n > 0 {
		w.Parts = rapid.SliceOfN(part, n, n).Draw(t, "some parts")
	}
	if n := rapid.IntRange(0, 400).Draw(t, "bytes"); n > 0 {
		w.Raw = rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "raw")
	}
	return w
}

// A form reads nothing that the codec would read otherwise, of what was encoded and of what was damaged after that.
func TestFormReadsWhatTheCodecReads(t *testing.T) {
	t.Parallel()
	codec := es.Msgpack{}
	rapid.Check(t, func(t *rapid.T) {
		body, err := codec.Marshal(drawWhole(t))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 2).Draw(t, "damages") {
			if len(body) == 0 {
				break
			}
			at := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				body[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				body = body[:at]
			case 2:
				body = append(body[:at:at], body[min(at+1, len(body)):]...)
			}
		}
		var have, want formOuter
		if !es.ReadForm(body, &have) {
			return
		}
		if err := codec.UnmarshalTimeless(body, &want); err != nil {
			t.Fatalf("the form reads what the codec does not: %v", err)
		}
		if diff := cmp.Diff(want, have, cmp.AllowUnexported(formOuter{}, formWhole{})); diff != "" {
			t.Fatalf("(-codec +form):\n%s", diff)
		}
	})
}

// The usual bodies are read by their form, not by the codec.
func TestFormReadsTheUsual(t *testing.T) {
	t.Parallel()
	var w formOuter
	w.Node, w.Text, w.Count, w.Good, w.List, w.Raw = "n1", "text", 70_000, true, []string{"a", "b"}, json.RawMessage(`{"a":1}`)
	w.Part, w.Parts = &formPart{Name: "p", Size: 1 << 40}, []formPart{{Name: "q"}}
	for _, whole := range []formOuter{w, {}, {formWhole: formWhole{Node: "n", Count: 7}}} {
		body, err := es.Msgpack{}.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		var have formOuter
		if !es.ReadForm(body, &have) {
			t.Errorf("%+v is left to the codec", whole)
		}
		if diff := cmp.Diff(whole, have, cmp.AllowUnexported(formOuter{}, formWhole{})); diff != "" {
			t.Errorf("(-want +have):\n%s", diff)
		}
	}
}

// What a form does not know is left to the codec.
func TestTypesWithoutAForm(t *testing.T) {
	t.Parallel()
	type nested struct {
		Self []*formPart `json:"self"`
		M    struct {
			F float64 `json:"f"`
		} `json:"m"`
	}
	type twice struct {
		formPart
		Name string `json:"name"`
	}
	type own struct {
		Hash es.Hash `json:"hash"`
	}
	for _, of := range []any{
		"", 7, map[string]string{}, nested{}, twice{}, own{}, struct {
			At time.Time `json:"at"`
		}{}, struct {
			Any any `json:"any"`
		}{}, struct {
			Labels map[string]string `json:"labels"`
		}{}, struct{ Untagged string }{}, struct {
			P *string `json:"p"`
		}{},
	} {
		if es.HasForm(reflect.TypeOf(of)) {
			t.Errorf("%T has a form", of)
		}
	}
	if !es.HasForm(reflect.TypeFor[formOuter]()) {
		t.Error("what has a form has none")
	}
}
