package main

import (
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/pflag"

	"catenary/audit/when"
)

// envZone names the zone that people read and write times in, for those who do not want their machine's.
const envZone = "CATENARY_ZONE"

// location is the zone people read and write times in. It gives usage errors.
func (a *app) location() (*time.Location, error) {
	for _, from := range []struct{ what, name string }{{"--zone", a.zone}, {envZone, a.Env(envZone)}, {"TZ", a.Env("TZ")}} {
		if from.name == "" {
			continue
		}
		zone, err := when.Zone(from.name)
		return zone, errors.Mark(errors.Wrap(err, from.what), errUsage)
	}
	return machineZone(), nil
}

// machineZone is the machine's own zone, by its name where that can be told: others know it by that alone.
func machineZone() *time.Location {
	path, err := os.Readlink("/etc/localtime")
	if _, name, ok := strings.Cut(path, "zoneinfo/"); err == nil && ok {
		if zone, err := when.Zone(name); err == nil {
			return zone
		}
	}
	return time.Local
}

// parseTime reads a time in the notation of package when. It gives usage errors.
func (a *app) parseTime(text string) (time.Time, error) {
	zone, err := a.location()
	if err != nil {
		return time.Time{}, err
	}
	t, err := when.Parse(text, a.Now(), zone)
	return t, errors.Mark(err, errUsage)
}

// timeFlag is a flag that holds a time. Its text is read once all flags are known, since the zone is one of them.
type timeFlag struct {
	name, text string
	given      bool
	value      *time.Time
}

var _ pflag.Value = (*timeFlag)(nil)

// timeVar adds a flag that holds a time. The value is there when the command runs.
func (a *app) timeVar(flags *pflag.FlagSet, value *time.Time, name, usage string) {
	f := &timeFlag{name: name, value: value}
	a.times = append(a.times, f)
	flags.Var(f, name, usage)
}

// readTimes reads the flags that hold times. It gives usage errors.
func (a *app) readTimes() error {
	for _, f := range a.times {
		if !f.given {
			continue
		}
		t, err := a.parseTime(f.text)
		if err != nil {
			return errors.Wrapf(err, "--%s", f.name)
		}
		*f.value = t
	}
	return nil
}

// String gives the text.
func (f *timeFlag) String() string { return f.text }

// Set keeps the text.
func (f *timeFlag) Set(text string) error {
	f.text, f.given = text, true
	return nil
}

// Type is shown in the help.
func (f *timeFlag) Type() string { return "time" }

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
