package main

import (
	"testing"
	"time"

	"github.com/cockroachdb/errors"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	a := &app{Main: Main{Now: func() time.Time { return now }, Env: func(name string) string {
		return map[string]string{"TZ": "Asia/Kathmandu"}[name]
	}}}
	for text, want := range map[string]string{
		"2026-05-01T07:34:45Z":           "2026-05-01T07:34:45Z",
		"2026-05-01T07:34:45.123456789Z": "2026-05-01T07:34:45.123456789Z",
		"2026-05-01T07:34:45+02:00":      "2026-05-01T05:34:45Z",
		"2026-05-01":                     "2026-04-30T18:15:00Z",
		"2026-05-01T07:34":               "2026-05-01T01:49:00Z",
		"2026-05-01 07:34:45":            "2026-05-01T01:49:45Z",
		"90m":                            "2026-05-01T10:30:00Z",
		"24h":                            "2026-04-30T12:00:00Z",
	} {
		found, err := a.parseTime(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if s := found.Format(time.RFC3339Nano); s != want {
			t.Errorf("%q is %s, want %s", text, s, want)
		}
	}
	for _, text := range []string{"", "soon", "2026-13-01", "-5m", "1746084885", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "30000d"} {
		if found, err := a.parseTime(text); !errors.Is(err, errUsage) {
			t.Errorf("%q gave %v and %v, want a usage error", text, found, err)
		}
	}
	a.Env = func(string) string { return "Middle/Earth" }
	if _, err := a.parseTime("2026-05-01"); !errors.Is(err, errUsage) {
		t.Errorf("an unknown zone gave %v, want a usage error", err)
	}
}
