package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
)

// TestTimeFlags reads times in the zone that the flags, or else the environment, name: in whichever order they are given.
func TestTimeFlags(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		args, zone, tz, want string
	}{
		{"2026-05-01", "", "Asia/Kathmandu", "2026-04-30T18:15:00Z"},
		{"2026-05-01", "Europe/Berlin", "Asia/Kathmandu", "2026-04-30T22:00:00Z"},
		{"2026-05-01 --zone Asia/Tokyo", "Europe/Berlin", "Asia/Kathmandu", "2026-04-30T15:00:00Z"},
		{"--zone Asia/Tokyo 2026-05-01", "Europe/Berlin", "Asia/Kathmandu", "2026-04-30T15:00:00Z"},
		{"7d", "", "UTC", "2026-04-24T12:00:00Z"},
		{"yesterday", "UTC", "", "2026-04-30T00:00:00Z"},
	} {
		a := &app{Main: Main{Now: func() time.Time { return now }, Env: func(name string) string {
			return map[string]string{"TZ": c.tz, "CATENARY_ZONE": c.zone}[name]
		}}}
		root := a.rootCommand()
		var found time.Time
		a.timeVar(root.Flags(), &found, "at", "")
		args := strings.Fields(c.args)
		if at := len(args) - 1; args[0] == "--zone" {
			args[at] = "--at=" + args[at]
		} else {
			args[0] = "--at=" + args[0]
		}
		if err := errors.CombineErrors(root.ParseFlags(args), a.readTimes()); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if s := found.Format(time.RFC3339Nano); s != c.want {
			t.Errorf("%v is %s, want %s", c, s, c.want)
		}
	}
}

// TestTimeFlagsExplain gives a wrong time, and a wrong zone from each of its places.
func TestTimeFlagsExplain(t *testing.T) {
	t.Parallel()
	c := on(t)
	for _, call := range []struct {
		args []string
		env  map[string]string
		says []string
	}{
		{[]string{"log", "--since", "last tusday"}, nil, []string{`--since: "last tusday" is not a time`, "did you mean tuesday?", "yesterday 16:00"}},
		{[]string{"get", "node", "n", "--as-of", ""}, nil, []string{"--as-of", "it is empty"}},
		{[]string{"log", "--since", "2026-03-29 02:30", "--zone", "Europe/Berlin"}, nil, []string{"does not exist in Europe/Berlin"}},
		{[]string{"log", "--since", "yesterday", "--zone", "Berlin"}, nil, []string{`--zone: "Berlin" is no time zone`, "Europe/Berlin"}},
		{[]string{"log"}, map[string]string{"CATENARY_ZONE": "Middle/Earth"}, []string{"CATENARY_ZONE", "Middle/Earth"}},
		{[]string{"log"}, map[string]string{"TZ": "Middle/Earth"}, []string{"TZ", "Middle/Earth"}},
		{[]string{"import", "deliveries", "-", "--state", "x", "--state-time", "1"}, nil, []string{"--state-time"}},
		{[]string{"assign", "n", "m", "--package", "p@1", "--effective", "soon"}, nil, []string{"--effective"}},
	} {
		found := c.with(call.env).must(exitUsage, call.args...)
		for _, words := range call.says {
			if !strings.Contains(found.err, words) {
				t.Errorf("%q says\n%swant %q", call.args, found.err, words)
			}
		}
	}
}
