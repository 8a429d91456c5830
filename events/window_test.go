package events_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the test must find its zones on every machine

	"catenary/events"
)

func TestWindowHolds(t *testing.T) {
	t.Parallel()
	nights := &events.Recurring{Days: []string{"fri"}, From: "22:00", To: "06:00", Zone: "Europe/Berlin"}
	office := &events.Recurring{Days: []string{"mon", "tue", "wed", "thu", "fri"}, From: "09:00", To: "17:30", Zone: "America/New_York"}
	lateHours := &events.Recurring{From: "02:15", To: "02:45", Zone: "Europe/Berlin"}
	overGap := &events.Recurring{From: "01:30", To: "03:30", Zone: "Europe/Berlin"}
	cases := []struct {
		name   string
		window events.Window
		at     string
		want   bool
	}{
		{"before the start", events.Window{Start: "2026-05-01T00:00:00Z"}, "2026-04-30T23:59:59Z", false},
		{"at the start", events.Window{Start: "2026-05-01T00:00:00Z"}, "2026-05-01T00:00:00Z", true},
		{"long after a start without end", events.Window{Start: "2026-05-01T00:00:00Z"}, "2030-05-01T00:00:00Z", true},
		{"before the end", events.Window{End: "2026-05-01T00:00:00Z"}, "2026-04-30T23:59:59.999Z", true},
		{"at the end", events.Window{End: "2026-05-01T00:00:00Z"}, "2026-05-01T00:00:00Z", false},
		{"in another zone's words", events.Window{Start: "2026-05-01T02:00:00+02:00"}, "2026-05-01T00:00:00Z", true},

		{"friday evening", events.Window{Recurring: nights}, "2026-05-01T20:00:00Z", true}, // 22:00 in Berlin
		{"friday too early", events.Window{Recurring: nights}, "2026-05-01T19:59:59Z", false},
		{"over midnight", events.Window{Recurring: nights}, "2026-05-02T03:59:59Z", true}, // saturday 05:59 in Berlin
		{"saturday morning is over", events.Window{Recurring: nights}, "2026-05-02T04:00:00Z", false},
		{"saturday evening is another night", events.Window{Recurring: nights}, "2026-05-02T21:00:00Z", false},
		{"friday morning belongs to thursday", events.Window{Recurring: nights}, "2026-05-01T02:00:00Z", false},
		{"in winter the same hour is another", events.Window{Recurring: nights}, "2026-12-04T20:30:00Z", false}, // 21:30 in Berlin
		{"in winter an hour later", events.Window{Recurring: nights}, "2026-12-04T21:00:00Z", true},

		{"office hours", events.Window{Recurring: office}, "2026-05-01T13:00:00Z", true}, // 09:00 in New York
		{"after work", events.Window{Recurring: office}, "2026-05-01T21:30:00Z", false},
		{"at the weekend", events.Window{Recurring: office}, "2026-05-02T14:00:00Z", false},

		// On 2026-10-25 the hour from 02:00 to 03:00 comes twice in Berlin.
		{"the repeated hour, first", events.Window{Recurring: lateHours}, "2026-10-25T00:30:00Z", true},
		{"the repeated hour, between", events.Window{Recurring: lateHours}, "2026-10-25T00:50:00Z", false},
		{"the repeated hour, again", events.Window{Recurring: lateHours}, "2026-10-25T01:30:00Z", true},
		// On 2026-03-29 the clock goes from 02:00 to 03:00.
		{"an hour that never comes", events.Window{Recurring: lateHours}, "2026-03-29T01:30:00Z", false},
		{"before the gap", events.Window{Recurring: overGap}, "2026-03-29T00:59:59Z", true},
		{"after the gap", events.Window{Recurring: overGap}, "2026-03-29T01:00:00Z", true},
		{"after the stretch", events.Window{Recurring: overGap}, "2026-03-29T01:30:00Z", false},

		{"a whole day", events.Window{Recurring: &events.Recurring{Days: []string{"sun"}, From: "00:00", To: "24:00", Zone: "UTC"}}, "2026-05-03T23:59:59Z", true},
		{"not the day after", events.Window{Recurring: &events.Recurring{Days: []string{"sun"}, From: "00:00", To: "24:00", Zone: "UTC"}}, "2026-05-04T00:00:00Z", false},
		{"until midnight", events.Window{Recurring: &events.Recurring{Days: []string{"sun"}, From: "22:00", To: "00:00", Zone: "UTC"}}, "2026-05-04T00:00:00Z", false},

		{"recurring, but not yet", events.Window{Start: "2026-06-01T00:00:00Z", Recurring: nights}, "2026-05-01T20:00:00Z", false},
		{"recurring, still", events.Window{End: "2026-06-01T00:00:00Z", Recurring: nights}, "2026-05-01T20:00:00Z", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schedule, err := c.window.Schedule(time.LoadLocation)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339Nano, c.at)
			if err != nil {
				t.Fatal(err)
			}
			if got := schedule.Holds(at); got != c.want {
				t.Errorf("at %s: got %v, want %v", c.at, got, c.want)
			}
		})
	}
}

// TestWindowOpens asks for the opening at moments about every change of the clocks in a year, and about an end of the window, and compares it with
// the first moment that is not inside.
func TestWindowOpens(t *testing.T) {
	t.Parallel()
	const grain = 10 * time.Minute
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "UTC"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			place, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			about := []time.Time{time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)}
			for at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); ; {
				_, at = at.In(place).ZoneBounds()
				if at.IsZero() || at.UTC().Year() > 2026 {
					break
				}
				about = append(about, at.UTC())
			}
			for _, r := range []events.Recurring{
				{From: "01:00", To: "02:30"}, {From: "02:10", To: "02:40"}, {From: "23:30", To: "00:30"}, {From: "22:00", To: "02:00"}, {From: "09:00", To: "03:00"},
				{From: "00:00", To: "24:00"}, {From: "00:00", To: "24:00", Days: []string{"sun", "mon"}}, {From: "22:00", To: "02:30", Days: []string{"sat"}},
			} {
				for _, change := range about {
					for _, end := range []string{"", change.Add(90 * time.Minute).Format(time.RFC3339)} {
						r.Zone = zone
						s, err := events.Window{End: end, Recurring: &r}.Schedule(time.LoadLocation)
						if err != nil {
							t.Fatal(err)
						}
						for at := change.Add(-26 * time.Hour); at.Before(change.Add(26 * time.Hour)); at = at.Add(grain) {
							want := at
							for s.Holds(want) && want.Before(at.AddDate(0, 0, 8)) {
								want = want.Add(grain)
							}
							if got, ok := s.Opens(at); ok == s.Holds(want) || ok && !got.Equal(want) {
								t.Fatalf("%+v until %q at %s: opens at %s (%v), want %s", r, end, at.In(place), got.In(place), ok, want.In(place))
							}
						}
					}
				}
			}
		})
	}
}

func TestScheduleSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	cases := []struct {
		window events.Window
		says   string
	}{
		{events.Window{}, "until lifted"},
		{events.Window{Start: "2026-05-01"}, `start "2026-05-01" is not a time`},
		{events.Window{End: "x"}, `end "x" is not a time`},
		{events.Window{Start: "2026-05-01T00:00:00Z", End: "2026-05-01T00:00:00Z"}, "not after start"},
		{events.Window{Recurring: &events.Recurring{From: "24:00", To: "01:00", Zone: "UTC"}}, "next day"},
		{events.Window{Recurring: &events.Recurring{From: "00:00", To: "25:00", Zone: "UTC"}}, `to "25:00"`},
		{events.Window{Recurring: &events.Recurring{From: "00:00", To: "01:00", Zone: "Nowhere/City"}}, "Nowhere/City"},
	}
	for _, c := range cases {
		if _, err := c.window.Schedule(time.LoadLocation); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: got %v, want it to say %q", c.window, err, c.says)
		}
	}
}
