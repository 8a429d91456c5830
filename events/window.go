package events

import (
	"time"

	"github.com/cockroachdb/errors"
)

// Window is the time a freeze holds: from start to end, or again and again, or again and again between start and end.
// Without a window a freeze holds until it is lifted.
type Window struct {
	// Start and End are RFC 3339 times; either may be left out. The end itself is outside.
	Start string `json:"start,omitempty"`
	End   string `json:"end,omitempty"`
	// Recurring repeats weekly in its own time zone.
	Recurring *Recurring `json:"recurring,omitempty"`
}

// Recurring is a stretch of time that comes again on days of the week. It is judged by the clock on the wall of its zone:
// an hour that a change of clocks repeats is inside both times, one that it leaves out never comes.
type Recurring struct {
	// Days are mon, tue, wed, thu, fri, sat and sun; none means every day. A stretch over midnight belongs to the day it
	// begins on.
	Days []string `json:"days,omitempty"`
	// From and To are HH:MM; a To before From ends on the next day. To may be 24:00 and is itself outside.
	From string `json:"from"`
	To   string `json:"to"`
	// Zone is an IANA time zone.
	Zone string `json:"zone"`
}

// Zones gives a time zone by its name, as [time.LoadLocation] does. It is an argument, so that a decision depends on no
// machine's files by itself.
type Zones func(name string) (*time.Location, error)

// Schedule is a window that was read. The zero value holds always.
type Schedule struct {
	start, end time.Time
	recurring  bool
	zone       *time.Location
	// days is a set by weekday.
	days [7]bool
	// from and to are minutes of the day.
	from, to int
}

// Schedule reads the window. It gives errors that name the field, the value and what is expected.
func (w Window) Schedule(zones Zones) (Schedule, error) {
	var s Schedule
	var err error
	if s.start, err = windowTime("start", w.Start); err != nil {
		return Schedule{}, err
	}
	if s.end, err = windowTime("end", w.End); err != nil {
		return Schedule{}, err
	}
	switch {
	case w.Start == "" && w.End == "" && w.Recurring == nil:
		return Schedule{}, errors.New("neither start, end nor recurring is given: leave the window out to hold until lifted")
	case w.Start != "" && w.End != "" && !s.start.Before(s.end):
		return Schedule{}, errors.Newf("end %s is not after start %s", w.End, w.Start)
	case w.Recurring != nil:
		return s.recur(*w.Recurring, zones)
	}
	return s, nil
}

func (s Schedule) recur(r Recurring, zones Zones) (Schedule, error) {
	s.recurring = true
	var err error
	if s.from, err = minuteOfDay("from", r.From); err != nil {
		return Schedule{}, err
	}
	if s.to, err = minuteOfDay("to", r.To); err != nil {
		return Schedule{}, err
	}
	switch {
	case s.from == minutesOfDay:
		return Schedule{}, errors.New("from 24:00 is the next day's 00:00: write that")
	case s.from == s.to:
		return Schedule{}, errors.Newf("from and to are both %s: write 00:00 to 24:00 for the whole day", r.From)
	case r.Zone == "" || r.Zone == "Local":
		return Schedule{}, errors.New("zone is not given: name one, such as Europe/Berlin or UTC")
	}
	if s.zone, err = zones(r.Zone); err != nil {
		return Schedule{}, errors.Newf("zone %.64q is unknown: name one of the IANA time zones, such as Europe/Berlin", r.Zone)
	}
	for _, d := range r.Days {
		day, ok := weekday(d)
		if !ok {
			return Schedule{}, errors.Newf("day %.64q is unknown: days are mon, tue, wed, thu, fri, sat and sun", d)
		}
		s.days[day] = true
	}
	if len(r.Days) == 0 {
		s.days = [7]bool{true, true, true, true, true, true, true}
	}
	return s, nil
}

// Holds says whether the moment is inside.
func (s Schedule) Holds(at time.Time) bool {
	if !s.start.IsZero() && at.Before(s.start) || !s.end.IsZero() && !at.Before(s.end) {
		return false
	}
	if !s.recurring {
		return true
	}
	local := at.In(s.zone)
	minute, today := local.Hour()*60+local.Minute(), local.Weekday()
	if s.from < s.to {
		return s.days[today] && s.from <= minute && minute < s.to
	}
	yesterday := (today + 6) % 7
	return s.days[today] && s.from <= minute || s.days[yesterday] && minute < s.to
}

// followed is for how long a window that comes again is followed: in a week every stretch has come once.
const followed = 8 * 24 * time.Hour

// Opens gives the first moment from then on that is outside. It gives none for a window without an end, and for one whose
// stretches follow one another without a gap.
func (s Schedule) Opens(at time.Time) (time.Time, bool) {
	if !s.Holds(at) {
		return at, true
	}
	if s.recurring {
		for next := s.turns(at); next.Before(at.Add(followed)); next = s.turns(next) {
			if !s.Holds(next) {
				return next.UTC(), true
			}
		}
	}
	return s.end, !s.end.IsZero()
}

// turns gives the next moment at which a stretch may end: when the clock on the wall comes to its end or is changed, or when the window ends.
func (s Schedule) turns(at time.Time) time.Time {
	local := at.In(s.zone)
	sinceMidnight := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute +
		time.Duration(local.Second())*time.Second + time.Duration(local.Nanosecond())
	wait := (time.Duration(s.to)*time.Minute - sinceMidnight) % (24 * time.Hour)
	if wait <= 0 {
		wait += 24 * time.Hour
	}
	next := at.Add(wait)
	if _, changed := local.ZoneBounds(); !changed.IsZero() && changed.Before(next) {
		next = changed
	}
	if s.end.After(at) && s.end.Before(next) {
		next = s.end
	}
	return next
}

func windowTime(field, v string) (time.Time, error) {
	if v == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		return time.Time{}, errors.Newf("%s %.64q is not a time: write it like 2026-12-24T12:00:00Z", field, v)
	}
	return t, nil
}

const minutesOfDay = 24 * 60

func minuteOfDay(field, v string) (int, error) {
	if v == "24:00" {
		return minutesOfDay, nil
	}
	t, err := time.Parse("15:04", v)
	if err != nil || len(v) != len("15:04") {
		return 0, errors.Newf("%s %.64q is not a time of day: write it like 09:30", field, v)
	}
	return t.Hour()*60 + t.Minute(), nil
}

func weekday(name string) (time.Weekday, bool) {
	for day, n := range [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} {
		if n == name {
			return time.Weekday(day), true
		}
	}
	return 0, false
}
