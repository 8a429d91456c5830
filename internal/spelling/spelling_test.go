package spelling

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"staging", "production", "integration", "email-alert-api", "email-alert-frontend", "whitehall", "n1", "n2", "Web", "節点"}
	for _, c := range []struct {
		word string
		want []string
	}{
		{"stagin", []string{"staging"}},
		{"prodcution", []string{"production"}},
		{"web", []string{"Web"}},
		{"email-alert", []string{"email-alert-api", "email-alert-frontend"}},
		{"alert-api", []string{"email-alert-api"}},
		{"whitehall", nil},
		{"n3", []string{}},
		{"n", []string{"n1", "n2"}},
		{"節", []string{"節点"}},
		{"", []string{}},
		{"something else", []string{}},
	} {
		if diff := cmp.Diff(c.want, Nearest(c.word, slices.Values(known))); diff != "" {
			t.Errorf("%q (-want +found):\n%s", c.word, diff)
		}
	}
}

// TestEdits compares the count with the definition, word for word.
func TestEdits(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if found, want := edits(a, b, 9), plainEdits([]rune(a), []rune(b)); found != want {
			t.Fatalf("%q to %q takes %d, want %d", a, b, found, want)
		}
	})
}

// plainEdits is the definition, without a table.
func plainEdits(a, b []rune) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	i, j := len(a)-1, len(b)-1
	change := plainEdits(a[:i], b[:j])
	if a[i] != b[j] {
		change++
	}
	least := min(change, plainEdits(a[:i], b)+1, plainEdits(a, b[:j])+1)
	if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
		least = min(least, plainEdits(a[:i-1], b[:j-1])+1)
	}
	return least
}
