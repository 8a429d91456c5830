package when

import (
	"regexp"
	"strings"
	"time"

	// Zones are in the program, so that the same text means the same everywhere, also where the machine has none.
	_ "time/tzdata"

	"github.com/cockroachdb/errors"
)

// ErrZone marks a name that no time zone has.
var ErrZone = errors.New("no such time zone")

// Zone gives the time zone of a name such as Europe/Berlin or UTC; Local is the machine's own. It gives errors marked
// [ErrZone].
func Zone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		err = errors.Newf("%q is no time zone", name)
		return nil, errors.Mark(errors.WithHint(err, "zones are named such as Europe/Berlin, America/New_York or UTC"), ErrZone)
	}
	return zone, nil
}

// splitZone takes a zone off the end of the words; nil when there is none.
func splitZone(words []string) ([]string, *time.Location, error) {
	if len(words) == 0 {
		return words, nil, nil
	}
	rest, word := words[:len(words)-1], words[len(words)-1]
	// 16:00z and 16:00+02:00 are a time of day with its zone.
	if m := regexp.MustCompile(`^(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(z|[+-]\d{2}:?\d{2})$`).FindStringSubmatch(word); m != nil {
		zone, err := offsetZone(m[2])
		return append(rest[:len(rest):len(rest)], m[1]), zone, err
	}
	switch {
	case len(rest) == 0:
		return words, nil, nil
	case word == "utc" || word == "z" || word == "gmt":
		return rest, time.UTC, nil
	case regexp.MustCompile(`^[+-]\d{2}:?\d{2}$`).MatchString(word):
		zone, err := offsetZone(word)
		return rest, zone, err
	case strings.Contains(word, "/") && !strings.ContainsAny(word[:1], "0123456789"):
		zone, err := Zone(word)
		return rest, zone, err
	}
	return words, nil, nil
}

// offsetZone gives the zone that is so far from UTC.
func offsetZone(offset string) (*time.Location, error) {
	if offset == "z" {
		return time.UTC, nil
	}
	digitsOnly := strings.ReplaceAll(offset[1:], ":", "")
	hours, minutes := digits(digitsOnly[:2]), digits(digitsOnly[2:])
	if hours > lastHour || minutes > lastMinute {
		return nil, errors.Newf("%s is no distance from UTC", offset)
	}
	seconds := (hours*60 + minutes) * 60
	if offset[0] == '-' {
		seconds = -seconds
	}
	return time.FixedZone("UTC"+offset[:1]+digitsOnly[:2]+":"+digitsOnly[2:], seconds), nil
}
