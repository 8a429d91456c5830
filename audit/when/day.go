package when

import (
	"regexp"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// date is a day of the calendar, wherever it is.
type date struct {
	year  int
	month time.Month
	day   int
}

// add gives the date so many days later.
func (d date) add(days int) date {
	return dateOf(time.Date(d.year, d.month, d.day+days, 0, 0, 0, 0, time.UTC))
}

func (d date) weekday() time.Weekday {
	return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Weekday()
}

// String gives it as it is written here.
func (d date) String() string {
	return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date{y, m, d}
}

// today is the date in the zone.
func (r reading) today() date { return dateOf(r.now.In(r.zone)) }

// named is a day as it was written. Where every is set, days that come every so often were meant, and date is the latest of
// them that has begun.
type named struct {
	date  date
	every int
}

const daysAWeek = 7

// day reads a day; ok is false when it is none. Days that are counted back are a day only when a time of day goes with them:
// alone they are a span.
func (r reading) day(words []string, timed bool) (d named, ok bool, err error) {
	if timed && len(words) > 1 && words[len(words)-1] == "ago" {
		return r.daysAgo(words[:len(words)-1])
	}
	last := len(words) == 2 && words[0] == "last"
	if last {
		words = words[1:]
	}
	if len(words) != 1 {
		return named{}, false, nil
	}
	if weekday, ok := weekdays()[words[0]]; ok {
		back := int(r.today().weekday()-weekday+daysAWeek) % daysAWeek
		if last {
			if back == 0 {
				back = daysAWeek
			}
			return named{date: r.today().add(-back)}, true, nil
		}
		return named{date: r.today().add(-back), every: daysAWeek}, true, nil
	}
	switch {
	case last:
		return named{}, false, nil
	case words[0] == "today":
		return named{date: r.today()}, true, nil
	case words[0] == "yesterday":
		return named{date: r.today().add(-1)}, true, nil
	case !regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`).MatchString(words[0]):
		return named{}, false, nil
	}
	t, err := time.Parse(time.DateOnly, words[0])
	if err != nil {
		return named{}, false, errors.Newf("the calendar has no %s", words[0])
	}
	return named{date: dateOf(t)}, true, nil
}

// daysAgo reads a number of whole days as the day that is so many back.
func (r reading) daysAgo(words []string) (named, bool, error) {
	s, ok, err := parseSpan(strings.Join(words, " "))
	switch {
	case !ok || err != nil:
		return named{}, false, err
	case !s.wholeDays:
		return named{}, false, errors.New("hours that are counted back from now have no time of day of their own")
	}
	return named{date: r.today().add(-int(s.length / day))}, true, nil
}

// weekdays are the names of the days, and the short forms that people write.
func weekdays() map[string]time.Weekday {
	names := map[string]time.Weekday{"tues": time.Tuesday, "thur": time.Thursday, "thurs": time.Thursday}
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := strings.ToLower(d.String())
		names[name], names[name[:3]] = d, d
	}
	return names
}
