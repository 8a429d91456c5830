package es_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
)

// Three versions of one fact: the oldest knew one name, the second two, the present one a list.
type (
	renamedV1 struct {
		Name string `json:"name"`
	}
	renamedV2 struct {
		First string `json:"first"`
		Last  string `json:"last"`
	}
	renamed struct {
		Names []string `json:"names"`
	}
	other struct {
		N int `json:"n"`
	}
)

func registry() *es.Registry {
	r := es.NewRegistry(es.Msgpack{})
	es.Register[renamed](r, "node.renamed.v3")
	es.Upcast(r, "node.renamed.v2", func(o renamedV2) renamed { return renamed{Names: []string{o.First, o.Last}} })
	es.Upcast(r, "node.renamed.v1", func(o renamedV1) renamedV2 { return renamedV2{First: o.Name, Last: "?"} })
	es.Register[other](r, "node.other.v1")
	return r
}

func stored(t *testing.T, name string, body []byte) es.Message {
	t.Helper()
	e := es.Event{ID: "e1", Type: name, Ref: es.Ref{Aggregate: "node", Key: "n1"}, Version: 1, Recorded: time.Unix(1, 0), Command: es.Cause{ID: "c1"}, Body: body}
	m := e.Message(es.ContentTypeMsgpack)
	es.Head{}.Seal(&m)
	return m
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	body, err := es.Msgpack{}.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestDecodeUpcastsToThePresentVersion(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		in   any
		want any
	}{
		{"node.renamed.v1", renamedV1{Name: "a"}, renamed{Names: []string{"a", "?"}}},
		{"node.renamed.v2", renamedV2{First: "a", Last: "b"}, renamed{Names: []string{"a", "b"}}},
		{"node.renamed.v3", renamed{Names: []string{"x"}}, renamed{Names: []string{"x"}}},
		{"node.other.v1", other{N: 3}, other{N: 3}},
	}
	for _, c := range cases {
		body := marshal(t, c.in)
		e, err := registry().Decode(stored(t, c.name, body))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, e.Data); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if e.Type != c.name || string(e.Body) != string(body) {
			t.Errorf("%s: type %s and body %x are not as stored", c.name, e.Type, e.Body)
		}
	}
}

// Case C25: an event of a newer program is kept and can be read raw.
func TestDecodeKeepsUnknownTypes(t *testing.T) {
	t.Parallel()
	e, err := registry().Decode(stored(t, "node.renamed.v9", []byte{0xC0}))
	if !errors.Is(err, es.ErrUnknownType) || !strings.Contains(err.Error(), "node.renamed.v9") {
		t.Errorf("error %v", err)
	}
	if e.Data != nil || e.ID != "e1" || e.Type != "node.renamed.v9" || string(e.Body) != "\xC0" {
		t.Errorf("read as %+v", e)
	}
}

func TestDecodeNamesAnUnreadableBody(t *testing.T) {
	t.Parallel()
	e, err := registry().Decode(stored(t, "node.other.v1", []byte{0xC1}))
	if !errors.Is(err, es.ErrUndecodable) || !strings.Contains(err.Error(), "node.other.v1") {
		t.Errorf("error %v", err)
	}
	if e.Data != nil || e.ID != "e1" {
		t.Errorf("read as %+v", e)
	}
}

func TestEncodeTakesOnlyPresentVersions(t *testing.T) {
	t.Parallel()
	r := registry()
	name, body, err := r.Encode(renamed{Names: []string{"x"}})
	if err != nil || name != "node.renamed.v3" || string(body) != string(marshal(t, renamed{Names: []string{"x"}})) {
		t.Errorf("encoded as %s %x (%v)", name, body, err)
	}
	for _, bad := range []any{renamedV1{}, renamedV2{}, &renamed{}, "text", nil} {
		if name, _, err := r.Encode(bad); !errors.Is(err, es.ErrUnknownType) {
			t.Errorf("%T is encoded as %q (%v)", bad, name, err)
		}
	}
}

func TestRegistryListsAllVersions(t *testing.T) {
	t.Parallel()
	r := registry()
	names := r.Names()
	slices.Sort(names)
	if diff := cmp.Diff([]string{"node.other.v1", "node.renamed.v1", "node.renamed.v2", "node.renamed.v3"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if zero, err := r.Zero("node.renamed.v1"); err != nil || zero != any(renamedV1{}) {
		t.Errorf("zero value %#v (%v)", zero, err)
	}
	if _, err := r.Zero("nothing.v1"); !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("error %v", err)
	}
}

func TestRegisterPanicsOnMistakes(t *testing.T) {
	t.Parallel()
	type unsorted struct {
		Counts map[string]int `json:"counts"`
	}
	cases := map[string]func(*es.Registry){
		"a name bound twice":      func(r *es.Registry) { es.Register[sample](r, "node.other.v1") },
		"a type bound twice":      func(r *es.Registry) { es.Register[other](r, "node.other.v2") },
		"a map in random order":   func(r *es.Registry) { es.Register[unsorted](r, "node.unsorted.v1") },
		"an old version as a new": func(r *es.Registry) { es.Register[renamedV1](r, "node.renamed.v4") },
	}
	for name, register := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			register(registry())
		})
	}
}

// An upcaster to a type that nobody registered is found when it is used, and named.
func TestDecodeNamesAnUpcastToNowhere(t *testing.T) {
	t.Parallel()
	r := es.NewRegistry(es.Msgpack{})
	es.Upcast(r, "node.renamed.v1", func(renamedV1) renamedV2 { return renamedV2{} })
	_, err := r.Decode(stored(t, "node.renamed.v1", marshal(t, renamedV1{Name: "a"})))
	if !errors.Is(err, es.ErrUndecodable) || !strings.Contains(err.Error(), "renamedV2") {
		t.Errorf("error %v", err)
	}
}
