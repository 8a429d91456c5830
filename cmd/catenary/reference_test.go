package main

import (
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/events"
)

func TestParsePackage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]events.Package{
		"shop@1.20":       {Name: "shop", Version: "1.20"},
		"@scope/x@1.0":    {Name: "@scope/x", Version: "1.0"},
		"a@b@1":           {Name: "a@b", Version: "1"},
		"shop@1e5":        {Name: "shop", Version: "1e5"},
		"shop@0362525":    {Name: "shop", Version: "0362525"},
		"shop@ 1 ":        {Name: "shop", Version: " 1 "},
		"节点@版本":           {Name: "节点", Version: "版本"},
		"shop@v1+build.7": {Name: "shop", Version: "v1+build.7"},
	} {
		found, err := parsePackage(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%q (-want +found):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "shop", "@", "shop@", "@1.0", "@scope/x"} {
		if found, err := parsePackage(text); !errors.Is(err, errUsage) {
			t.Errorf("%q gave %+v and %v, want a usage error", text, found, err)
		}
	}
}

func TestParseReference(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]events.Reference{
		"shop@1.20":     {Package: &events.Package{Name: "shop", Version: "1.20"}},
		"@scope/x@1.0":  {Package: &events.Package{Name: "@scope/x", Version: "1.0"}},
		"sha256:c0ffee": {Artifact: "sha256:c0ffee"},
		"4651090":       {Artifact: "4651090"},
	} {
		found, err := parseReference(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%q (-want +found):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "@scope/x", "shop@"} {
		if found, err := parseReference(text); !errors.Is(err, errUsage) {
			t.Errorf("%q gave %+v and %v, want a usage error", text, found, err)
		}
	}
}
