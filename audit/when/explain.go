package when

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/internal/spelling"
)

// explain says what about the words is no time, as well as it can be told.
func explain(words []string) error {
	text := strings.Join(words, " ")
	is := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(text) }
	switch {
	case is(`^\d{9,}$`):
		return errors.New("seconds since 1970 are not read: they are easily taken for something else")
	case is(`^-`):
		return errors.WithHintf(errors.New("spans are counted back from now, without a sign"), "write %s ago", strings.TrimLeft(text, "-"))
	case is(`^\d{1,4}[./]\d{1,2}[./]\d{1,4}\b`), is(`^\d{1,4}-\d{1,2}-\d{1,4}\b`):
		return errors.New("a date is written as year, month and day with all digits, so that nobody takes a day for a month: 2026-08-01")
	case is(`^tomorrow\b|^next\b|^in \d`):
		return errors.New("it lies ahead, and nothing is recorded for that yet")
	case is(`^last (week|month|year)$`):
		return errors.New("it is no moment: say how many days or weeks ago, or the date")
	}
	known := slices.Collect(maps.Keys(weekdays()))
	known = append(known, "today", "yesterday", "now", "noon", "midnight", "last", "ago", "hours", "minutes", "days", "weeks")
	for _, w := range words {
		if slices.Contains(known, w) {
			continue
		}
		if _, ok, err := parseClock(w); ok || err != nil {
			continue
		}
		near := slices.DeleteFunc(spelling.Nearest(w, slices.Values(known)), func(s string) bool { return len(s) < 3 })
		err := errors.Newf("%q is not understood", w)
		if len(near) > 0 {
			err = errors.WithHintf(err, "did you mean %s?", near[0])
		}
		return err
	}
	return errors.New("its words make no moment together")
}
