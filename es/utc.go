package es

import (
	"reflect"
	"time"
)

// inUTC moves every time in a decoded value to UTC. The msgpack decoder gives local times: the same event would then be
// shown, and stored in views, differently in every place.
func inUTC(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			inUTC(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if v.CanSet() {
				v.Set(reflect.ValueOf(v.Interface().(time.Time).UTC()))
			}
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && mayHoldTime(f.Kind()) {
				inUTC(f)
			}
		}
	case reflect.Slice, reflect.Array:
		if mayHoldTime(v.Type().Elem().Kind()) {
			for i := range v.Len() {
				inUTC(v.Index(i))
			}
		}
	case reflect.Map:
		if mayHoldTime(v.Type().Elem().Kind()) {
			for _, key := range v.MapKeys() {
				v.SetMapIndex(key, utcCopy(v.MapIndex(key)))
			}
		}
	case reflect.Interface:
		if !v.IsNil() && v.CanSet() && mayHoldTime(v.Elem().Kind()) {
			v.Set(utcCopy(v.Elem()))
		}
	}
}

// utcCopy gives a changed copy of a value that can't be changed where it is.
func utcCopy(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	inUTC(c)
	return c
}

func mayHoldTime(k reflect.Kind) bool {
	switch k {
	case reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Interface:
		return true
	}
	return false
}

// holdsTime says whether a value of a type can hold a time. It is asked once for each type: most events hold none, and
// need no walk.
func holdsTime(t reflect.Type) bool { return holds(t, map[reflect.Type]bool{}) }

func holds(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return true
		}
		for i := range t.NumField() {
			if holds(t.Field(i).Type, seen) {
				return true
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holds(t.Elem(), seen)
	case reflect.Interface:
		return true
	}
	return false
}
