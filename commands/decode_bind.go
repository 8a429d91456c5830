package commands

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"catenary/es"
	"catenary/events"
)

// plan says how values of one Go type are read. Plans are made once, with the registry.
type plan struct {
	// want describes the type to people.
	want string
	bind func(path string, v *value, into reflect.Value) *es.Refusal
	// fields are those of a struct, in the order of its definition.
	fields []Field
}

// planOf makes the plan of a type. It panics on a type that no payload has: a mistake in the program, found at its first
// start.
func planOf(t reflect.Type) *plan {
	switch t {
	case reflect.TypeFor[time.Time]():
		return &plan{want: "a time such as 2026-05-01T12:00:00Z", bind: bindTime}
	case reflect.TypeFor[events.Raw]():
		return &plan{want: "JSON", bind: bindRaw}
	}
	switch t.Kind() {
	case reflect.String:
		return &plan{want: "text", bind: bindText}
	case reflect.Bool:
		return &plan{want: "true or false", bind: bindBool}
	case reflect.Int:
		return &plan{want: "a whole number", bind: bindInt}
	case reflect.Uint64:
		return &plan{want: "a whole number, not below zero", bind: bindUint}
	case reflect.Pointer:
		return pointerPlan(planOf(t.Elem()))
	case reflect.Slice:
		return listPlan(planOf(t.Elem()))
	case reflect.Map:
		return labelPlan(planOf(t.Elem()))
	case reflect.Struct:
		return structPlan(t)
	}
	panic(fmt.Sprintf("commands: a payload can't have a field of type %v", t))
}

func wrongType(path, want string, v *value) *es.Refusal {
	return invalid(CodeWrongType, fmt.Sprintf("%s must be %s, not %s", path, want, v.kind), "")
}

func bindText(path string, v *value, into reflect.Value) *es.Refusal {
	if v.kind != kindText {
		return wrongType(path, "text", v)
	}
	s, refusal := v.str(path)
	into.SetString(s)
	return refusal
}

func bindBool(path string, v *value, into reflect.Value) *es.Refusal {
	if v.kind != kindBool {
		return wrongType(path, "true or false", v)
	}
	into.SetBool(v.yes)
	return nil
}

func bindInt(path string, v *value, into reflect.Value) *es.Refusal {
	if v.kind != kindNumber {
		return wrongType(path, "a whole number", v)
	}
	n, err := strconv.ParseInt(v.text, 10, into.Type().Bits())
	if err != nil {
		return invalid(CodeWrongType, fmt.Sprintf("%s must be a whole number, not %.40s", path, v.text), "")
	}
	into.SetInt(n)
	return nil
}

func bindUint(path string, v *value, into reflect.Value) *es.Refusal {
	if v.kind != kindNumber {
		return wrongType(path, "a whole number", v)
	}
	n, err := strconv.ParseUint(v.text, 10, into.Type().Bits())
	if err != nil {
		return invalid(CodeWrongType, fmt.Sprintf("%s must be a whole number, not below zero, not %.40s", path, v.text), "")
	}
	into.SetUint(n)
	return nil
}

func bindTime(path string, v *value, into reflect.Value) *es.Refusal {
	t := v.time
	switch v.kind {
	case kindTime:
	case kindText:
		s, refusal := v.str(path)
		if refusal != nil {
			return refusal
		}
		var err error
		if t, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return invalid(CodeBadValue, fmt.Sprintf("%s %.64q is not a time", path, s), "write it like 2026-05-01T12:00:00Z")
		}
	default:
		return wrongType(path, "a time such as 2026-05-01T12:00:00Z", v)
	}
	into.Set(reflect.ValueOf(t.UTC()))
	return nil
}

// bindRaw takes JSON as it stands in the body. In msgpack it comes as bytes or text that hold JSON.
func bindRaw(path string, v *value, into reflect.Value) *es.Refusal {
	raw := v.source
	switch {
	case v.kind == kindText && !v.quoted:
		raw = []byte(v.text)
	case raw == nil:
		return wrongType(path, "JSON in bytes", v)
	}
	if raw = bytes.Clone(raw); raw == nil {
		raw = []byte{}
	}
	into.SetBytes(raw)
	return nil
}

func pointerPlan(elem *plan) *plan {
	return &plan{want: elem.want, fields: elem.fields, bind: func(path string, v *value, into reflect.Value) *es.Refusal {
		into.Set(reflect.New(into.Type().Elem()))
		return elem.bind(path, v, into.Elem())
	}}
}

func listPlan(elem *plan) *plan {
	return &plan{want: "a list", fields: elem.fields, bind: func(path string, v *value, into reflect.Value) *es.Refusal {
		if v.kind != kindList {
			return wrongType(path, "a list", v)
		}
		if len(v.items) > MaxListItems {
			return invalid(CodeTooLarge, fmt.Sprintf("%s has %d items: the limit is %d", path, len(v.items), MaxListItems), "")
		}
		if len(v.items) == 0 {
			return nil
		}
		into.Set(reflect.MakeSlice(into.Type(), len(v.items), len(v.items)))
		for i := range v.items {
			if refusal := bindOne(elem, item(path, i), &v.items[i], into.Index(i)); refusal != nil {
				return refusal
			}
		}
		return nil
	}}
}

func labelPlan(elem *plan) *plan {
	return &plan{want: "an object", bind: func(path string, v *value, into reflect.Value) *es.Refusal {
		if v.kind != kindObject {
			return wrongType(path, "an object", v)
		}
		if len(v.fields) > MaxLabels {
			return invalid(CodeTooLarge, fmt.Sprintf("%s has %d entries: the limit is %d", path, len(v.fields), MaxLabels), "")
		}
		if len(v.fields) == 0 {
			return nil
		}
		into.Set(reflect.MakeMapWithSize(into.Type(), len(v.fields)))
		for i := range v.fields {
			f := &v.fields[i]
			name, entry := reflect.ValueOf(f.name), reflect.New(into.Type().Elem()).Elem()
			if into.MapIndex(name).IsValid() {
				return twice(path, f.name)
			}
			if refusal := bindOne(elem, inside(path, f.name), &f.value, entry); refusal != nil {
				return refusal
			}
			into.SetMapIndex(name, entry)
		}
		return nil
	}}
}

// bindOne reads a value where null is no way to leave something out.
func bindOne(p *plan, path string, v *value, into reflect.Value) *es.Refusal {
	if v.kind == kindNull {
		return invalid(CodeNullField, fmt.Sprintf("%s is null: it must be %s", path, p.want), "leave it out instead")
	}
	return p.bind(path, v, into)
}

func twice(path, name string) *es.Refusal {
	return invalid(CodeDuplicateField, fmt.Sprintf("%.64s is given twice", inside(path, name)), "give it once")
}

// inside gives the path of a field; the body itself has the empty path.
func inside(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

type structField struct {
	Field
	index []int
	plan  *plan
}

func structPlan(t reflect.Type) *plan {
	list := structFields(t, nil)
	byName := make(map[string]int, len(list))
	fields := make([]Field, len(list))
	known := make([]string, len(list))
	for i, f := range list {
		if _, ok := byName[f.Name]; ok {
			panic(fmt.Sprintf("commands: %v has two fields %s", t, f.Name))
		}
		byName[f.Name], fields[i], known[i] = i, f.Field, f.Name
	}
	return &plan{want: "an object", fields: fields, bind: func(path string, v *value, into reflect.Value) *es.Refusal {
		if v.kind != kindObject {
			return wrongType(orBody(path), "an object", v)
		}
		seen := make([]bool, len(list))
		for i := range v.fields {
			given := &v.fields[i]
			at, ok := byName[given.name]
			switch {
			case !ok:
				return invalid(CodeUnknownField, fmt.Sprintf("%s has no field %.64q", orBody(path), given.name), "it knows "+strings.Join(known, ", "))
			case seen[at]:
				return twice(path, given.name)
			}
			seen[at] = true
			if refusal := bindOne(list[at].plan, inside(path, given.name), &given.value, into.FieldByIndex(list[at].index)); refusal != nil {
				return refusal
			}
		}
		return nil
	}}
}

func orBody(path string) string {
	if path == "" {
		return "the body"
	}
	return path
}

// structFields lists a struct's fields by their names on the bus; those of embedded structs count as its own.
func structFields(t reflect.Type, index []int) []structField {
	var list []structField
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		tag, named := f.Tag.Lookup("json")
		if f.Anonymous && !named {
			list = append(list, structFields(f.Type, at)...)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		p := planOf(f.Type)
		list = append(list, structField{
			Field: Field{Name: name, Type: p.want, Optional: strings.Contains(options, "omit"), Fields: p.fields},
			index: at, plan: p,
		})
	}
	return list
}
