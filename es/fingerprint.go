package es

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"slices"
)

// Fingerprint stands for how this program reads events: the codec, every stored name, what each decodes to and what it is
// upcast to. Two programs with the same fingerprint make the same data of the same events, but for the code of their
// upcasters: whoever changes what one gives MUST give the type it makes another form or name.
func (r *Registry) Fingerprint() string {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, r.codec.ContentType())
	names := r.Names()
	slices.Sort(names)
	for _, name := range names {
		reg := r.byName[name]
		_, _ = fmt.Fprint(h, name, " upcast:", reg.upcast != nil, " ")
		describe(h, reg.typ, map[reflect.Type]bool{})
		_, _ = fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// describe writes how a type is built. A type that holds itself is described once.
func describe(out io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	_, _ = fmt.Fprint(out, t, " ", t.Kind())
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			_, _ = fmt.Fprintf(out, " %s %q (", f.Name, f.Tag)
			describe(out, f.Type, seen)
			_, _ = fmt.Fprint(out, ")")
		}
	case reflect.Map:
		_, _ = fmt.Fprint(out, " of ")
		describe(out, t.Key(), seen)
		_, _ = fmt.Fprint(out, " to ")
		describe(out, t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		_, _ = fmt.Fprint(out, " of ")
		describe(out, t.Elem(), seen)
	}
}
