package chain_test

import (
	"encoding/json"
	"reflect"
	"time"

	"pgregory.net/rapid"

	"catenary/events"
)

// texts are those that lose something on the way when a codec is not careful, and ordinary ones.
var texts = rapid.OneOf(
	rapid.SampledFrom([]string{
		"web", "1.20", "4651090", "0362525", "1e5", "true", "null", "012", "NaN", "a<b>&c", `back\slash "quoted"`, "node ä", "節点", "🚢",
		"\u2028", "\ufffd", `\ufffd`, `{"":0}`, "{", "tab\tnew\nline", "\x00", "\x7f",
	}),
	rapid.String(),
)

var rawJSON = rapid.SampledFrom([]string{
	`{}`, `null`, `[1, 2.50, 1e5]`, `{"b": 1, "a": "<&>", "a": 2}`, `"text"`, ` {"around": true} `, "{\"file\": 1}\n", `{"":0}`, `0.10`,
	"{\n  \"deep\": {\"provisioning\": [ ]},\n  \"manifest\": 1\n}", `"\u003c\ufffd"`, "\"\u2028\"", `",}"`,
})

// record gives records of a type with every field drawn, so that a field added later is tried too.
func record[T any]() *rapid.Generator[T] {
	return rapid.Custom(func(t *rapid.T) T {
		var r T
		fill(t, reflect.ValueOf(&r).Elem())
		return r
	})
}

func fill(t *rapid.T, v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		if rapid.Bool().Draw(t, "set") {
			at := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "nanoseconds"))
			v.Set(reflect.ValueOf(at.UTC()))
		}
		return
	case reflect.TypeFor[events.Raw]():
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.ValueOf(json.RawMessage(rawJSON.Draw(t, "raw"))))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.String:
		v.SetString(texts.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "number"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 2).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i))
			}
		}
	case reflect.Map:
		if n := rapid.IntRange(0, 3).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				value := reflect.New(v.Type().Elem()).Elem()
				fill(t, value)
				v.SetMapIndex(reflect.ValueOf(texts.Draw(t, "key")), value)
			}
		}
	default:
		t.Fatalf("no way to draw a %v", v.Type())
	}
}
