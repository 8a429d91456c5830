package spelling

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// MostSuggestions bounds the suggestions: a person reads a few, and a long list helps nobody.
const MostSuggestions = 3

// suggestion is a known word and how far it is from what was typed.
type suggestion struct {
	word string
	// distance counts edits; a word that only begins with or holds what was typed comes after all that were mistyped.
	distance int
}

// Nearest gives the known words that a word may have meant, best first.
func Nearest(word string, known iter.Seq[string]) []string {
	typed := strings.ToLower(word)
	most := mostEdits(typed)
	var found []suggestion
	for k := range known {
		if k == word {
			return nil
		}
		meant := strings.ToLower(k)
		switch d := edits(typed, meant, most); {
		case d <= most:
			found = append(found, suggestion{k, d})
		case typed != "" && strings.HasPrefix(meant, typed):
			found = append(found, suggestion{k, most + 1})
		case typed != "" && utf8.RuneCountInString(typed) > 2 && strings.Contains(meant, typed):
			found = append(found, suggestion{k, most + 2})
		}
	}
	slices.SortFunc(found, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(len(a.word), len(b.word)), strings.Compare(a.word, b.word))
	})
	found = slices.CompactFunc(found, func(a, b suggestion) bool { return a.word == b.word })
	words := make([]string, 0, MostSuggestions)
	for _, s := range found[:min(len(found), MostSuggestions)] {
		words = append(words, s.word)
	}
	return words
}

// mostEdits is how many slips a word of this length may have: in a short one everything is near to everything.
func mostEdits(word string) int {
	switch n := utf8.RuneCountInString(word); {
	case n <= 2:
		return 0
	case n <= 4:
		return 1
	default:
		return 2
	}
}

// edits counts the least insertions, deletions, changes and swaps of neighbours that make one word of the other. Beyond most it
// may give any number above it.
func edits(from, to string, most int) int {
	a, b := []rune(from), []rune(to)
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	// Three rows of the table are enough: a swap looks two back.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
