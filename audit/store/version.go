package store

import (
	"cmp"
	"strings"

	"catenary/events"
)

// lower says whether a package is of a lower version than another of the same name. Only versions of the same form can be compared:
// numbers with dots between, with or without a v before them.
func lower(now, before events.Reference) bool {
	if now.Package == nil || before.Package == nil || now.Package.Name != before.Package.Name {
		return false
	}
	n, ok := numbers(now.Package.Version)
	b, also := numbers(before.Package.Version)
	if !ok || !also || strings.HasPrefix(now.Package.Version, "v") != strings.HasPrefix(before.Package.Version, "v") {
		return false
	}
	for i := range max(len(n), len(b)) {
		if order := compareNumbers(part(n, i), part(b, i)); order != 0 {
			return order < 0
		}
	}
	return false
}

// numbers gives the numbers of a version as text: they may be longer than any number type.
func numbers(version string) ([]string, bool) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	for i, p := range parts {
		if p == "" || strings.Trim(p, "0123456789") != "" {
			return nil, false
		}
		parts[i] = strings.TrimLeft(p, "0")
	}
	return parts, true
}

func part(numbers []string, i int) string {
	if i < len(numbers) {
		return numbers[i]
	}
	return ""
}

// compareNumbers compares numbers without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
