package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// timesHelp is how a time is written on the command line.
const timesHelp = "RFC 3339, a local date or time such as 2026-05-01 or 2026-05-01T07:34, or a span back from now such as 90m or 7d"

// location is the zone people read and write times in.
func (a *app) location() (*time.Location, error) {
	name := a.Env("TZ")
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, usagef("TZ is %q, which is no time zone: give one such as Europe/Berlin", name)
	}
	return zone, nil
}

// parseTime reads a time as timesHelp says. It gives usage errors.
func (a *app) parseTime(text string) (time.Time, error) {
	t, err := a.readTime(text)
	if err == nil && t.Before(time.Unix(0, 0)) {
		// Nothing is recorded for such times, and the zero time would mean that none is given.
		return time.Time{}, usagef("%q lies before 1970, where the chain's time begins", text)
	}
	return t, err
}

func (a *app) readTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.UTC(), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return a.Now().Add(-d).UTC(), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return a.Now().Add(-time.Duration(n) * 24 * time.Hour).UTC(), nil
		}
	}
	zone, err := a.location()
	if err != nil {
		return time.Time{}, err
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usagef("%q is not a time: write it as %s", text, timesHelp)
}

// timeFlag is a flag that holds a time.
type timeFlag struct {
	app   *app
	value *time.Time
}

var _ pflag.Value = timeFlag{}

// String gives the time; empty when none was given.
func (f timeFlag) String() string {
	if f.value == nil || f.value.IsZero() {
		return ""
	}
	return f.value.Format(time.RFC3339Nano)
}

// Set reads the time.
func (f timeFlag) Set(text string) error {
	t, err := f.app.parseTime(text)
	if err == nil {
		*f.value = t
	}
	return err
}

// Type is shown in the help.
func (f timeFlag) Type() string { return "time" }

// patienceFlag is a flag that holds a span of time in which something can be done.
type patienceFlag struct{ value *time.Duration }

var _ pflag.Value = patienceFlag{}

// String gives the span.
func (f patienceFlag) String() string {
	if f.value == nil {
		return ""
	}
	return f.value.String()
}

// Set reads the span.
func (f patienceFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return usagef("it is a span of time above zero, such as 30s")
	}
	*f.value = d
	return nil
}

// Type is shown in the help.
func (f patienceFlag) Type() string { return "span" }

// showTime gives a time for tables: local, and to the second.
func showTime(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format("2006-01-02 15:04:05 -0700")
}
