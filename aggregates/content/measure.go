package content

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"catenary/events"
)

// Measure tells how large values are as JSON, which is the form records are kept in. It remembers how each type is built, so
// one goroutine uses it at a time. The zero value is ready for use.
type Measure struct{ sizers map[reflect.Type]sizer }

// sizer gives the size of a value of one type, as JSON.
type sizer func(reflect.Value) int

// JSON gives an upper bound of the bytes that a value takes as JSON. It is exact, but for what a writer of JSON may escape and
// for the white space of raw JSON: both count in full.
func (m *Measure) JSON(v any) int {
	if v == nil {
		return len("null")
	}
	return m.sizer(reflect.TypeOf(v))(reflect.ValueOf(v))
}

func (m *Measure) sizer(t reflect.Type) sizer {
	if s, ok := m.sizers[t]; ok {
		return s
	}
	s := m.make(t)
	if m.sizers == nil {
		m.sizers = map[reflect.Type]sizer{}
	}
	m.sizers[t] = s
	return s
}

func (m *Measure) make(t reflect.Type) sizer {
	switch t {
	case reflect.TypeFor[time.Time]():
		return func(reflect.Value) int { return len(time.RFC3339Nano) + len(`""`) }
	case reflect.TypeFor[events.Raw]():
		return func(v reflect.Value) int { return max(rawSize(v.Bytes()), len("null")) }
	}
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value) int { return textSize(v.String()) }
	case reflect.Bool:
		return func(reflect.Value) int { return len("false") }
	case reflect.Int:
		return func(v reflect.Value) int { return len(strconv.FormatInt(v.Int(), 10)) }
	case reflect.Uint64:
		return func(v reflect.Value) int { return len(strconv.FormatUint(v.Uint(), 10)) }
	case reflect.Pointer:
		elem := m.sizer(t.Elem())
		return func(v reflect.Value) int {
			if v.IsNil() {
				return len("null")
			}
			return elem(v.Elem())
		}
	case reflect.Slice:
		return listSizer(m.sizer(t.Elem()))
	case reflect.Map:
		return mapSizer(m.sizer(t.Key()), m.sizer(t.Elem()))
	case reflect.Struct:
		return m.structSizer(t)
	}
	panic(fmt.Sprintf("content: event data can't have a field of type %v", t))
}

func listSizer(elem sizer) sizer {
	return func(v reflect.Value) int {
		n := len("null") // no less than []
		for i := range v.Len() {
			n += elem(v.Index(i)) + len(",")
		}
		return n
	}
}

func mapSizer(key, elem sizer) sizer {
	return func(v reflect.Value) int {
		n := len("null")
		for i := v.MapRange(); i.Next(); {
			n += key(i.Key()) + elem(i.Value()) + len(":,")
		}
		return n
	}
}

type fieldSizer struct {
	index []int
	name  int
	omit  bool
	size  sizer
}

func (m *Measure) structSizer(t reflect.Type) sizer {
	fields := m.fields(t, nil)
	return func(v reflect.Value) int {
		n := len("{}")
		for _, f := range fields {
			if fv := v.FieldByIndex(f.index); !f.omit || !empty(fv) {
				n += f.name + f.size(fv)
			}
		}
		return n
	}
}

// fields lists a struct's fields; those of embedded structs count as its own, as they do in JSON.
func (m *Measure) fields(t reflect.Type, index []int) []fieldSizer {
	var list []fieldSizer
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int{}, index...), i)
		tag, named := f.Tag.Lookup("json")
		if f.Anonymous && !named {
			list = append(list, m.fields(f.Type, at)...)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		list = append(list, fieldSizer{index: at, name: len(name) + len(`"":,`), omit: strings.Contains(options, "omit"), size: m.sizer(f.Type)})
	}
	return list
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// textSize counts a text with its quotes and escapes; < > and & count as escaped.
func textSize(s string) int {
	n := len(`""`)
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			n += byteSize(c)
			i++
			continue
		}
		r, width := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && width == 1, r == '\u2028', r == '\u2029':
			n += len(`\u2028`)
		default:
			n += width
		}
		i += width
	}
	return n
}

func byteSize(c byte) int {
	switch {
	case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
		return len(`\n`)
	case c < ' ', c == '<', c == '>', c == '&':
		return len(`\u003c`)
	}
	return 1
}

// rawSize counts raw JSON, which a writer of JSON may escape in part.
func rawSize(raw []byte) int {
	n := len(raw)
	for i, c := range raw {
		switch {
		case c == '<', c == '>', c == '&':
			n += len(`\u003c`) - 1
		case c == 0xE2 && i+2 < len(raw) && raw[i+1] == 0x80 && raw[i+2]&^1 == 0xA8:
			n += len(`\u2028`) - 3
		}
	}
	return n
}
