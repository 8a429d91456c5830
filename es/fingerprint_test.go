package es_test

import (
	"testing"

	"catenary/es"
)

func TestFingerprintChangesWithTheReading(t *testing.T) {
	t.Parallel()
	type (
		fact  struct{ A string }
		inner struct{ B string }
		nest  struct{ In []inner }
	)
	with := func(register ...func(*es.Registry)) string {
		r := es.NewRegistry(es.Msgpack{})
		for _, f := range register {
			f(r)
		}
		return r.Fingerprint()
	}
	plain := func(r *es.Registry) { es.Register[fact](r, "node.a.v1") }
	nested := func(r *es.Registry) { es.Register[nest](r, "node.b.v1") }
	if with(plain, nested) != with(nested, plain) {
		t.Error("the order of registering changes the fingerprint")
	}
	seen := map[string]string{}
	for name, f := range map[string]string{
		"nothing":    with(),
		"one type":   with(plain),
		"two types":  with(plain, nested),
		"other name": with(func(r *es.Registry) { es.Register[fact](r, "node.a.v2") }),
		"other field inside": with(plain, func(r *es.Registry) {
			type inner struct{ C string }
			type nest struct{ In []inner }
			es.Register[nest](r, "node.b.v1")
		}),
		"other tag": with(func(r *es.Registry) {
			type fact struct {
				A string `json:"a"`
			}
			es.Register[fact](r, "node.a.v1")
		}),
		"upcast": with(plain, func(r *es.Registry) { es.Upcast(r, "node.b.v1", func(n nest) fact { return fact{} }) }),
	} {
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[f] = name
	}
}
