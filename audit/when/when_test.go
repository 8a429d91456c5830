package when

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cockroachdb/errors"
	"pgregory.net/rapid"
)

// zoneOf gives a zone that exists.
func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestParse reads every form, on a Wednesday afternoon in Berlin.
func TestParse(t *testing.T) {
	t.Parallel()
	berlin := zoneOf(t, "Europe/Berlin")
	now := time.Date(2026, 8, 5, 14, 30, 0, 500, berlin)
	for text, want := range map[string]string{
		"now":                            "2026-08-05T12:30:00.0000005Z",
		" NOW ":                          "2026-08-05T12:30:00.0000005Z",
		"2026-08-01T16:00:00Z":           "2026-08-01T16:00:00Z",
		"2026-08-01t16:00:00z":           "2026-08-01T16:00:00Z",
		"2026-08-01T16:00:00.123456789Z": "2026-08-01T16:00:00.123456789Z",
		"2026-08-01T16:00:00+05:45":      "2026-08-01T10:15:00Z",
		"2026-08-01T16:00Z":              "2026-08-01T16:00:00Z",
		"2026-08-01T16:00+02:00":         "2026-08-01T14:00:00Z",
		"2026-08-01T16:00":               "2026-08-01T14:00:00Z",
		"2026-08-01T16:00:30":            "2026-08-01T14:00:30Z",
		"2026-08-01 16:00":               "2026-08-01T14:00:00Z",
		"2026-08-01  at 16:00:30.25":     "2026-08-01T14:00:30.25Z",
		"2026-08-01 16:00 UTC":           "2026-08-01T16:00:00Z",
		"2026-08-01 16:00 Z":             "2026-08-01T16:00:00Z",
		"2026-08-01 16:00:00 +0530":      "2026-08-01T10:30:00Z",
		"2026-08-01 16:00 -07:00":        "2026-08-01T23:00:00Z",
		"2026-08-01 16:00 Asia/Tokyo":    "2026-08-01T07:00:00Z",
		"2026-08-01":                     "2026-07-31T22:00:00Z",
		"2026-08-01 UTC":                 "2026-08-01T00:00:00Z",
		"2026-01-01":                     "2025-12-31T23:00:00Z",
		"2026-08-01, 4pm":                "2026-08-01T14:00:00Z",
		"2026-08-01 4:30PM":              "2026-08-01T14:30:00Z",
		"2026-08-01 12am":                "2026-07-31T22:00:00Z",
		"2026-08-01 12pm":                "2026-08-01T10:00:00Z",
		"2026-08-01 noon":                "2026-08-01T10:00:00Z",
		"2026-08-01 midnight":            "2026-07-31T22:00:00Z",
		"today":                          "2026-08-04T22:00:00Z",
		"today 9:00":                     "2026-08-05T07:00:00Z",
		"today 16:00":                    "2026-08-05T14:00:00Z",
		"yesterday":                      "2026-08-03T22:00:00Z",
		"yesterday 16:00":                "2026-08-04T14:00:00Z",
		"yesterday at 16:00":             "2026-08-04T14:00:00Z",
		"16:00 yesterday":                "2026-08-04T14:00:00Z",
		"Yesterday 16:00 UTC":            "2026-08-04T16:00:00Z",
		"yesterday America/New_York":     "2026-08-04T04:00:00Z",
		"9:00":                           "2026-08-05T07:00:00Z",
		"16:00":                          "2026-08-04T14:00:00Z", // today it is still to come
		"14:30":                          "2026-08-05T12:30:00Z",
		"wednesday":                      "2026-08-04T22:00:00Z",
		"wednesday 9:00":                 "2026-08-05T07:00:00Z",
		"wednesday 16:00":                "2026-07-29T14:00:00Z",
		"last wednesday":                 "2026-07-28T22:00:00Z",
		"last wednesday 9:00":            "2026-07-29T07:00:00Z",
		"tuesday":                        "2026-08-03T22:00:00Z",
		"last tuesday 16:00":             "2026-08-04T14:00:00Z",
		"last Tuesday at 4pm":            "2026-08-04T14:00:00Z",
		"on thu":                         "2026-07-29T22:00:00Z",
		"2h ago":                         "2026-08-05T10:30:00.0000005Z",
		"2h":                             "2026-08-05T10:30:00.0000005Z",
		"90m":                            "2026-08-05T11:00:00.0000005Z",
		"1.5h ago":                       "2026-08-05T11:00:00.0000005Z",
		"1h30m":                          "2026-08-05T11:00:00.0000005Z",
		"1 hour and 30 minutes ago":      "2026-08-05T11:00:00.0000005Z",
		"an hour ago":                    "2026-08-05T11:30:00.0000005Z",
		"10 seconds ago":                 "2026-08-05T12:29:50.0000005Z",
		"7d":                             "2026-07-29T12:30:00.0000005Z",
		"3 days ago":                     "2026-08-02T12:30:00.0000005Z",
		"3 days ago 9:00":                "2026-08-02T07:00:00Z",
		"a week ago at noon":             "2026-07-29T10:00:00Z",
		"2w":                             "2026-07-22T12:30:00.0000005Z",
	} {
		got, err := Parse(text, now, berlin)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got.Format(time.RFC3339Nano) != want || got.Location() != time.UTC {
			t.Errorf("%q is %s, want %s", text, got.Format(time.RFC3339Nano), want)
		}
	}
}

// TestParseExplains reads what is no time: each is explained, and shown how it is written.
func TestParseExplains(t *testing.T) {
	t.Parallel()
	berlin := zoneOf(t, "Europe/Berlin")
	now := time.Date(2026, 8, 5, 14, 30, 0, 0, berlin)
	for text, says := range map[string]string{
		"":                            "it is empty",
		"   ":                         "it is empty",
		"soon":                        `"soon" is not understood`,
		"last tusday 16:00":           "did you mean tuesday?",
		"yesteday":                    "did you mean yesterday?",
		"3 dayz ago":                  `"3 dayz" is no span of time`,
		"now 16:00":                   "its words make no moment together",
		"16:00 17:00":                 "its words make no moment together",
		"last":                        "its words make no moment together",
		"at":                          "its words make no moment together",
		"UTC":                         `"utc" is not understood`,
		"2 months ago":                "a month has no fixed length",
		"last week":                   "say how many days or weeks ago",
		"2 hours ago 16:00":           "no time of day of their own",
		"tomorrow":                    "it lies ahead",
		"next monday":                 "it lies ahead",
		"in 2h":                       "it lies ahead",
		"-5m":                         "without a sign",
		"1746084885":                  "seconds since 1970 are not read",
		"01.08.2026":                  "year, month and day",
		"8/1/2026":                    "year, month and day",
		"2026-8-1":                    "year, month and day",
		"2026-13-01":                  "the calendar has no 2026-13-01",
		"2026-02-29":                  "the calendar has no 2026-02-29",
		"2026-08-01 24:00":            "hour 24, and they go from 0 to 23",
		"2026-08-01 12:60":            "minute 60",
		"2026-08-01 13pm":             "from 1 to 12",
		"2026-08-01 16:00 Mars/North": `"Mars/North" is no time zone`,
		"2026-08-01 16:00 +25:00":     "no distance from UTC",
		"1969-12-31T23:59:59Z":        "before 1970",
		"0001-01-01T00:00:00Z":        "before 1970",
		"30000d":                      "before 1970",
		"9999999w":                    "before 1970",
		"9999-12-31T23:59:59-01:00":   "after the year 9999",
		strings.Repeat("1h ", 100):    "no time has more than 100",
	} {
		got, err := Parse(text, now, berlin)
		if !errors.Is(err, ErrTime) || !got.IsZero() {
			t.Errorf("%q is %s, with error %v; want one that is marked as no time", text, got, err)
			continue
		}
		if said := err.Error() + "\n" + errors.FlattenHints(err); !strings.Contains(said, says) || !strings.Contains(said, Notation) {
			t.Errorf("%q is explained by\n%s\nwant %q and the notation", text, said, says)
		}
	}
}

// TestClocksAreSet reads times that clocks skip or show twice.
func TestClocksAreSet(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ zone, text, want, says string }{
		{"Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29T00:59:59Z", ""},
		{"Europe/Berlin", "2026-03-29 02:00", "", "does not exist in Europe/Berlin: clocks go from 2026-03-29T01:59:59+01:00 to 2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "2026-03-29 02:59", "", "does not exist"},
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29T01:00:00Z", ""},
		{"Europe/Berlin", "2026-10-25 01:59", "2026-10-24T23:59:00Z", ""},
		{"Europe/Berlin", "2026-10-25 02:00", "", "comes twice in Europe/Berlin, where clocks are set back: 2026-10-25T02:00:00+02:00 and 2026-10-25T02:00:00+01:00"},
		{"Europe/Berlin", "2026-10-25 02:59:59.5", "", "02:59:59.5+02:00 and 2026-10-25T02:59:59.5+01:00"},
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25T02:00:00Z", ""},
		{"Europe/Berlin", "2026-10-25 02:30 UTC", "2026-10-25T02:30:00Z", ""},
		{"Europe/Berlin", "last sunday 02:30", "", "comes twice"},
		{"Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", ""},
		{"America/New_York", "2026-11-01 01:30", "", "comes twice"},
		{"Australia/Lord_Howe", "2026-10-04 02:15", "", "does not exist"}, // half an hour
		{"Australia/Lord_Howe", "2026-04-05 01:45", "", "comes twice"},
		{"Australia/Lord_Howe", "2026-04-05 01:15", "2026-04-04T14:15:00Z", ""},
		{"America/Asuncion", "2023-10-01", "2023-10-01T04:00:00Z", ""}, // its midnight is skipped
		{"America/Asuncion", "2023-10-01 00:30", "", "does not exist"},
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", ""}, // its midnight comes twice
		{"America/Havana", "2026-11-01 00:30", "", "comes twice"},
		{"Pacific/Apia", "2011-12-30", "", "the calendar of Pacific/Apia skips 2011-12-30"},
		{"Pacific/Apia", "2011-12-30 12:00", "", "does not exist"},
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", ""},
		{"UTC", "2026-03-29 02:30", "2026-03-29T02:30:00Z", ""},
	} {
		got, err := Parse(c.text, now, zoneOf(t, c.zone))
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s in %s: %v", c.text, c.zone, err)
		case c.says == "" && got.Format(time.RFC3339Nano) != c.want:
			t.Errorf("%s in %s is %s, want %s", c.text, c.zone, got.Format(time.RFC3339Nano), c.want)
		case c.says != "" && (!errors.Is(err, ErrTime) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s in %s gives %v and %v, want a word on %q", c.text, c.zone, got, err, c.says)
		}
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Middle/Earth", "../etc/passwd", "+02:00"} {
		if _, err := Zone(name); !errors.Is(err, ErrZone) || errors.FlattenHints(err) == "" {
			t.Errorf("zone %q gave %v, want an error with a hint", name, err)
		}
	}
}

// someZones have changes of all kinds.
func someZones() []string {
	return []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo",
		"Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca", "America/Asuncion", "Asia/Pyongyang",
	}
}

// TestLocalTimes writes any moment as clocks show it: it is read back as that moment, or refused with both moments it may be.
func TestLocalTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(someZones()).Draw(t, "zone")
		zone, err := Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		moment := time.Unix(rapid.Int64Range(86400, 2_500_000_000).Draw(t, "seconds"), 0)
		if near := rapid.Bool().Draw(t, "near a change"); near {
			if _, change := moment.In(zone).ZoneBounds(); !change.IsZero() {
				moment = change.Add(time.Duration(rapid.Int64Range(-4000, 4000).Draw(t, "away")) * time.Second)
			}
		}
		local := moment.In(zone)
		got, err := Parse(local.Format(time.DateTime), moment, zone)
		if err == nil && !got.Equal(moment) {
			t.Fatalf("%s in %s is read as %s", local.Format(time.RFC3339), name, got.In(zone).Format(time.RFC3339))
		}
		if err != nil && !(strings.Contains(err.Error(), "comes twice") && strings.Contains(err.Error(), local.Format(time.RFC3339))) {
			t.Fatalf("%s in %s: %v", local.Format(time.RFC3339), name, err)
		}
		// With its distance from UTC it is always clear; this is also how tables show times.
		for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 -0700"} {
			if got, err := Parse(local.Format(layout), moment, zone); err != nil || !got.Equal(moment) {
				t.Fatalf("%s is read as %s (%v)", local.Format(layout), got, err)
			}
		}
		day, err := Parse(local.Format(time.DateOnly), moment, zone)
		if err != nil {
			t.Fatalf("the day of %s in %s: %v", local, name, err)
		}
		before := day.Add(-time.Nanosecond).In(zone).Format(time.DateOnly)
		if day.In(zone).Format(time.DateOnly) != local.Format(time.DateOnly) || day.After(moment) || before >= local.Format(time.DateOnly) && !strings.HasPrefix(name, "America/St") {
			t.Fatalf("the day of %s begins %s", local, day.In(zone))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"now", "2026-08-01", "2026-08-01 16:00", "2h ago", "last tuesday 16:00", "16:00 yesterday", "2026-08-01T16:00+02:00", "a week ago at noon",
		"1 hour and 30 minutes ago", "2026-10-25 02:30 Europe/Berlin", "999999999999999999h", "0.000000001w", "ago", "/", "+", "é/", "t", "4pm",
	} {
		f.Add(seed, int64(1785933000))
	}
	berlin := zoneOf(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix(max(min(seconds, endSecond-1), firstSecond), 0)
		got, err := Parse(text, now, berlin)
		if err != nil {
			if !errors.Is(err, ErrTime) || !got.IsZero() {
				t.Fatalf("%q gives %s and %v", text, got, err)
			}
			return
		}
		again, err := Parse(got.Format(time.RFC3339Nano), now, berlin)
		if err != nil || !again.Equal(got) || got.IsZero() {
			t.Fatalf("%q is %s, which is read as %s (%v)", text, got, again, err)
		}
		// Names of zones are told apart by their capitals, and some letters have none of their own.
		if strings.Contains(text, "/") || strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
			return
		}
		if upper, err := Parse(strings.ToUpper(text), now, berlin); err != nil || !upper.Equal(got) {
			t.Fatalf("%q is %s, and in capitals %s (%v)", text, got, upper, err)
		}
	})
}
