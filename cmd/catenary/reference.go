package main

import (
	"strings"

	"catenary/events"
)

// parsePackage reads NAME@VERSION. The last @ splits, unless it is the first character, which belongs to the name: npm's
// scoped packages begin with one. Name and version are text, kept byte for byte.
func parsePackage(text string) (events.Package, error) {
	at := strings.LastIndexByte(text, '@')
	if at <= 0 || at == len(text)-1 {
		return events.Package{}, usagef("%q is not NAME@VERSION, such as shop@1.20 or @acme/shop@1.20", text)
	}
	return events.Package{Name: text[:at], Version: text[at+1:]}, nil
}

// parseReference reads NAME@VERSION or the digest of an artifact.
func parseReference(text string) (events.Reference, error) {
	if strings.LastIndexByte(text, '@') <= 0 {
		if text == "" || text[0] == '@' {
			return events.Reference{}, usagef("%q is neither NAME@VERSION nor a digest", text)
		}
		return events.Reference{Artifact: text}, nil
	}
	p, err := parsePackage(text)
	return events.Reference{Package: &p}, err
}

// referenceFlags are the flags that name what can be run.
type referenceFlags struct{ pkg, artifact string }

func (f referenceFlags) reference() (events.Reference, error) {
	switch {
	case f.pkg != "" && f.artifact != "":
		return events.Reference{}, usagef("--package and --artifact are given: one of them")
	case f.pkg != "":
		p, err := parsePackage(f.pkg)
		return events.Reference{Package: &p}, err
	default:
		return events.Reference{Artifact: f.artifact}, nil
	}
}
