package when

import (
	"regexp"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// day is what a day counts in a span, whatever clocks do meanwhile.
const day = 24 * time.Hour

// longestSpan is more than all time that is recorded.
const longestSpan = 200 * 365 * day

// span is a length of time.
type span struct {
	length time.Duration
	// wholeDays says that it was written in days or weeks alone.
	wholeDays bool
}

// ago reads a span back from now; ok is false when the words are none.
func (r reading) ago(words []string) (t time.Time, ok bool, err error) {
	text := strings.Join(words, " ")
	rest, said := strings.CutSuffix(text, " ago")
	if !said && len(words) != 1 {
		return time.Time{}, false, nil
	}
	s, ok, err := parseSpan(rest)
	switch {
	case err != nil:
		return time.Time{}, false, err
	case ok:
		return r.now.Add(-s.length), true, nil
	case said:
		return time.Time{}, false, errors.Newf("%q is no span of time such as 2h, 90 minutes or 3 days", rest)
	}
	return time.Time{}, false, nil
}

// parseSpan reads one or several numbers with their units; ok is false when the text is none.
func parseSpan(text string) (s span, ok bool, err error) {
	part := regexp.MustCompile(`^(\d{1,7}(?:\.\d{1,9})?|an?|one) ?([a-z]+)( and)? ?`)
	s.wholeDays = true
	for text != "" {
		m := part.FindStringSubmatch(text)
		if m == nil {
			return span{}, false, nil
		}
		unit, found := units()[m[2]]
		if !found {
			if calendar(m[2]) {
				return span{}, false, errors.Newf("a %s has no fixed length: count days or weeks, or write the date", strings.TrimSuffix(m[2], "s"))
			}
			return span{}, false, nil
		}
		number := m[1]
		if number[0] == 'a' || number[0] == 'o' {
			number = "1"
		}
		// Seconds scale every unit without a loss.
		n, err := time.ParseDuration(number + "s")
		if err != nil {
			return span{}, false, err
		}
		seconds := n.Seconds() * unit.Seconds()
		if seconds > longestSpan.Seconds() {
			return span{}, false, errors.New("it lies before 1970, where the chain's time begins")
		}
		if n%time.Second == 0 {
			s.length += time.Duration(n/time.Second) * unit
		} else {
			s.length += time.Duration(seconds * float64(time.Second))
		}
		if s.length > longestSpan {
			return span{}, false, errors.New("it lies before 1970, where the chain's time begins")
		}
		s.wholeDays = s.wholeDays && unit%day == 0 && n%time.Second == 0
		text = text[len(m[0]):]
		ok = true
	}
	return s, ok, nil
}

// units are the words for lengths of time.
func units() map[string]time.Duration {
	found := map[string]time.Duration{}
	for unit, words := range map[time.Duration]string{
		time.Millisecond: "ms", time.Second: "s sec secs second seconds", time.Minute: "m min mins minute minutes",
		time.Hour: "h hr hrs hour hours", day: "d day days", daysAWeek * day: "w week weeks",
	} {
		for _, w := range strings.Fields(words) {
			found[w] = unit
		}
	}
	return found
}

// calendar says whether a unit's length depends on where in the calendar it lies.
func calendar(unit string) bool {
	switch unit {
	case "month", "months", "mon", "year", "years", "y":
		return true
	}
	return false
}
