package when

import (
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// ErrTime marks a text that is not a time. Its message names what was not understood, its hints show how to write it.
var ErrTime = errors.New("not a time")

// Notation is how a time is written, in a line.
const Notation = `RFC 3339, 2026-08-01, "2026-08-01 16:00", "2h ago", "yesterday 16:00", "last tuesday 16:00" or now`

// maxTextBytes bounds what is read: the longest form, with a zone, has about fifty.
const maxTextBytes = 100

// Bounds of what a time may be.
const (
	firstSecond = 0            // 1970
	endSecond   = 253402300800 // the year 10000, which RFC 3339 can't write
)

// Parse reads a time as the package's comment says. Relative times count from now; days and times of day are those of the
// zone, unless the text names one. It gives errors marked [ErrTime].
func Parse(text string, now time.Time, zone *time.Location) (time.Time, error) {
	t, err := reading{now: now, zone: zone}.read(text)
	if err == nil {
		err = bounded(t)
	}
	if err != nil {
		quoted := text
		if len(quoted) > maxTextBytes {
			quoted = quoted[:maxTextBytes] + "…"
		}
		err = errors.Wrapf(err, "%q is not a time", quoted)
		return time.Time{}, errors.Mark(errors.WithHint(err, "write it as "+Notation), ErrTime)
	}
	return t.UTC(), nil
}

func bounded(t time.Time) error {
	switch s := t.Unix(); {
	case s < firstSecond:
		return errors.New("it lies before 1970, where the chain's time begins")
	case s >= endSecond:
		return errors.New("it lies after the year 9999")
	}
	return nil
}

// reading is what a text is read against.
type reading struct {
	now  time.Time
	zone *time.Location
}

func (r reading) read(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return time.Time{}, errors.New("it is empty")
	case len(text) > maxTextBytes:
		return time.Time{}, errors.Newf("it has %d bytes, and no time has more than %d", len(text), maxTextBytes)
	}
	if t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text)); err == nil {
		return t, nil
	}
	words, zone, err := splitZone(split(text))
	if err != nil {
		return time.Time{}, err
	}
	if zone != nil {
		r.zone = zone
	}
	if len(words) == 1 && words[0] == "now" && zone == nil {
		return r.now, nil
	}
	if t, ok, err := r.ago(words); ok || err != nil {
		return t, err
	}
	return r.dayAndClock(words)
}

// dayAndClock reads a day, a time of day, or both in either order.
func (r reading) dayAndClock(words []string) (time.Time, error) {
	if d, ok, err := r.day(words, false); err != nil {
		return time.Time{}, err
	} else if ok {
		return r.begin(d.date)
	}
	if len(words) == 0 {
		return time.Time{}, explain(words)
	}
	first, last := words[0], words[len(words)-1]
	for _, order := range []struct {
		clock string
		day   []string
	}{{last, words[:len(words)-1]}, {first, words[1:]}} {
		at, ok, err := parseClock(order.clock)
		switch {
		case err != nil:
			return time.Time{}, err
		case !ok:
			continue
		case len(order.day) == 0:
			return r.latest(r.today(), 1, at)
		}
		d, ok, err := r.day(order.day, true)
		switch {
		case err != nil:
			return time.Time{}, err
		case ok && d.every > 0:
			return r.latest(d.date, d.every, at)
		case ok:
			return r.moment(d.date, at)
		}
	}
	return time.Time{}, explain(words)
}

// latest gives the latest moment that is not after now among the given day at a time of day and those before it, every so
// many days.
func (r reading) latest(d date, every int, at clock) (time.Time, error) {
	t, err := r.moment(d, at)
	if err != nil || !t.After(r.now) {
		return t, err
	}
	return r.moment(d.add(-every), at)
}

// split gives the words of a text, in lower case but for what may name a zone. A date and a time of day joined by a T are two.
func split(text string) []string {
	var words []string
	for _, w := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
		lower := strings.ToLower(w)
		if day, rest, ok := strings.Cut(lower, "t"); ok && len(day) == len(time.DateOnly) && strings.Count(day, "-") == 2 {
			words = append(words, day, rest)
			continue
		}
		switch {
		case lower == "at" || lower == "on":
		case strings.Contains(w, "/"):
			words = append(words, w)
		default:
			words = append(words, lower)
		}
	}
	return words
}
