package chain

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/errors"

	"catenary/events"
)

// Encoder gives the same bytes as [Encode] several times faster: it looks at the type once, and not at each record. It serves
// who encodes a record for each event. It keeps nothing of a record; one goroutine uses it at a time.
type Encoder[T any] struct {
	append appender
	size   int // of the largest record so far
}

// appender appends the JSON of a value.
type appender func(dst []byte, v reflect.Value) ([]byte, error)

// NewEncoder makes an encoder for records of a type. It panics for a type with fields of kinds that records do not have: a
// mistake in the program, found at its first start.
func NewEncoder[T any]() *Encoder[T] {
	return &Encoder[T]{append: appenderOf(reflect.TypeFor[T]())}
}

// Encode gives a record's JSON, as [Encode] does, in memory of its own. It gives the errors of [Encode].
func (e *Encoder[T]) Encode(record *T) ([]byte, error) {
	out, err := e.append(make([]byte, 0, e.size), reflect.ValueOf(record).Elem())
	if err != nil {
		return nil, errors.Wrapf(err, "encode %T", *record)
	}
	e.size = max(e.size, len(out))
	if cap(out)-len(out) > len(out)/4 {
		out = slices.Clip(slices.Clone(out)) // it may be kept for long
	}
	return out, nil
}

func appenderOf(t reflect.Type) appender {
	switch t {
	case reflect.TypeFor[time.Time]():
		return appendTime
	case reflect.TypeFor[events.Raw]():
		return appendRaw
	case reflect.TypeFor[map[string]string]():
		return appendTexts
	}
	switch t.Kind() {
	case reflect.String:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return appendText(dst, v.String()) }
	case reflect.Bool:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(dst, v.Bool()), nil }
	case reflect.Int:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(dst, v.Int(), 10), nil }
	case reflect.Uint64:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(dst, v.Uint(), 10), nil }
	case reflect.Pointer:
		return appenderOfPointer(t)
	case reflect.Slice:
		return appenderOfSlice(t)
	case reflect.Struct:
		return appenderOfStruct(t)
	default:
		panic(fmt.Sprintf("chain: a record has a field of type %v", t))
	}
}

func appenderOfPointer(t reflect.Type) appender {
	elem := appenderOf(t.Elem())
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return elem(dst, v.Elem())
	}
}

func appenderOfSlice(t reflect.Type) appender {
	elem := appenderOf(t.Elem())
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = elem(dst, v.Index(i)); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
}

// field is a field of an object; those of an embedded struct are the object's own.
type field struct {
	name   string // with quotes and colon
	index  []int
	omits  func(reflect.Value) bool
	append appender
}

func appenderOfStruct(t reflect.Type) appender {
	fields := fieldsOf(t, nil)
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		dst = append(dst, '{')
		empty := true
		for i := range fields {
			f := &fields[i]
			of := v.Field(f.index[0])
			for _, deeper := range f.index[1:] {
				of = of.Field(deeper)
			}
			if f.omits(of) {
				continue
			}
			if !empty {
				dst = append(dst, ',')
			}
			empty = false
			dst = append(dst, f.name...)
			var err error
			if dst, err = f.append(dst, of); err != nil {
				return dst, errors.Wrapf(err, "field %s", strings.Trim(f.name, `":`))
			}
		}
		return append(dst, '}'), nil
	}
}

func fieldsOf(t reflect.Type, above []int) []field {
	var fields []field
	for i := range t.NumField() {
		of := t.Field(i)
		index := append(slices.Clone(above), i)
		tag, tagged := of.Tag.Lookup("json")
		if of.Anonymous && !tagged {
			fields = append(fields, fieldsOf(of.Type, index)...)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" || name == "-" || !of.IsExported() {
			panic(fmt.Sprintf("chain: field %s of %v has no name in JSON", of.Name, t))
		}
		fields = append(fields, field{name: strconv.Quote(name) + ":", index: index, omits: omission(t, of, options), append: appenderOf(of.Type)})
	}
	return fields
}

// omission says when a field is left out.
func omission(t reflect.Type, of reflect.StructField, options string) func(reflect.Value) bool {
	switch {
	case options == "":
		return func(reflect.Value) bool { return false }
	case options == "omitzero" && of.Type == reflect.TypeFor[time.Time]():
		return func(v reflect.Value) bool { return v.Addr().Interface().(*time.Time).IsZero() }
	case options == "omitzero":
		return reflect.Value.IsZero
	case options == "omitempty" && (of.Type.Kind() == reflect.Slice || of.Type.Kind() == reflect.Map):
		return func(v reflect.Value) bool { return v.Len() == 0 }
	case options == "omitempty" && of.Type.Kind() != reflect.Struct:
		return reflect.Value.IsZero
	}
	panic(fmt.Sprintf("chain: field %s of %v is left out in a way that is not known: %s", of.Name, t, options))
}

func appendTime(dst []byte, v reflect.Value) ([]byte, error) {
	dst, err := v.Addr().Interface().(*time.Time).AppendText(append(dst, '"'))
	return append(dst, '"'), err
}

// appendRaw appends JSON as it was given.
func appendRaw(dst []byte, v reflect.Value) ([]byte, error) {
	raw := v.Bytes()
	if !json.Valid(raw) {
		return dst, errors.New("it is not JSON")
	}
	return append(dst, raw...), nil
}

// appendTexts appends named texts, by name.
func appendTexts(dst []byte, v reflect.Value) ([]byte, error) {
	texts := *v.Addr().Interface().(*map[string]string)
	if texts == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendText(dst, name); err != nil {
			return dst, err
		}
		if dst, err = appendText(append(dst, ':'), texts[name]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendText appends a text with the escapes that encoding/json makes.
func appendText(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, errors.Newf("it holds text that is not valid UTF-8, which would not come back byte for byte: %.60q", s)
	}
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		lineEnd := c == 0xe2 && (s[i:i+3] == "\u2028" || s[i:i+3] == "\u2029")
		if c >= ' ' && c != '"' && c != '\\' && !lineEnd {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch {
		case lineEnd:
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[s[i+2]&0xf])
			i += 2
			start = i + 1
		case c == '"', c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&0xf])
		}
	}
	return append(append(dst, s[start:]...), '"'), nil
}
