package when

import (
	"regexp"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"
)

// clock is a time of day, as clocks on the wall show it.
type clock struct {
	hour, minute, second, nanosecond int
}

const (
	lastHour   = 23
	lastMinute = 59
	lastSecond = 59
)

// parseClock reads a time of day; ok is false when it is none.
func parseClock(word string) (at clock, ok bool, err error) {
	switch word {
	case "noon":
		return clock{hour: 12}, true, nil
	case "midnight":
		return clock{}, true, nil
	}
	if m := regexp.MustCompile(`^(\d{1,2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?$`).FindStringSubmatch(word); m != nil {
		at = clock{hour: digits(m[1]), minute: digits(m[2]), second: digits(m[3])}
		if m[4] != "" {
			fraction, err := time.ParseDuration("0" + m[4] + "s")
			if err != nil {
				return clock{}, false, err
			}
			at.nanosecond = int(fraction)
		}
		return at, true, at.check(word)
	}
	if m := regexp.MustCompile(`^(\d{1,2})(?::(\d{2}))?(am|pm)$`).FindStringSubmatch(word); m != nil {
		at = clock{hour: digits(m[1]), minute: digits(m[2])}
		if at.hour < 1 || at.hour > 12 {
			return clock{}, false, errors.Newf("%s has hour %d, and before and after noon they go from 1 to 12", word, at.hour)
		}
		at.hour %= 12
		if m[3] == "pm" {
			at.hour += 12
		}
		return at, true, at.check(word)
	}
	return clock{}, false, nil
}

func (c clock) check(word string) error {
	switch {
	case c.hour > lastHour:
		return errors.Newf("%s has hour %d, and they go from 0 to %d", word, c.hour, lastHour)
	case c.minute > lastMinute:
		return errors.Newf("%s has minute %d, and they go from 0 to %d", word, c.minute, lastMinute)
	case c.second > lastSecond:
		return errors.Newf("%s has second %d, and they go from 0 to %d", word, c.second, lastSecond)
	}
	return nil
}

// digits gives the number that a few digits write; nothing is zero.
func digits(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0 // an optional part that is not there
	}
	return n
}
