package when

import (
	"slices"
	"time"

	"github.com/cockroachdb/errors"
)

// moment gives the one moment at which clocks in the zone show a date and a time of day.
func (r reading) moment(d date, at clock) (time.Time, error) {
	found, gap := r.moments(d, at)
	shown := d.String() + " " + at.String()
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		err := errors.Newf("%s does not exist in %s: clocks go from %s to %s", shown, r.zone,
			gap.Add(-time.Second).In(r.zone).Format(time.RFC3339), gap.In(r.zone).Format(time.RFC3339))
		return time.Time{}, errors.WithHintf(err, "write %s for the moment they are set", gap.In(r.zone).Format(time.RFC3339))
	default:
		first, second := found[0].In(r.zone).Format(time.RFC3339Nano), found[1].In(r.zone).Format(time.RFC3339Nano)
		err := errors.Newf("%s comes twice in %s, where clocks are set back: %s and %s", shown, r.zone, first, second)
		return time.Time{}, errors.WithHintf(err, "write %s or %s", first, second)
	}
}

// begin gives the first moment of a date: midnight, the first one of two, or when clocks skip it the moment they are set.
func (r reading) begin(d date) (time.Time, error) {
	found, gap := r.moments(d, clock{})
	if len(found) > 0 {
		return found[0], nil
	}
	if dateOf(gap.In(r.zone)) != d {
		return time.Time{}, errors.Newf("the calendar of %s skips %s", r.zone, d)
	}
	return gap, nil
}

// moments gives all moments at which clocks in the zone show a date and a time of day, earliest first. When there is none, gap
// is the moment at which they were set past it.
func (r reading) moments(d date, at clock) (found []time.Time, gap time.Time) {
	wall := func(zone *time.Location) time.Time {
		return time.Date(d.year, d.month, d.day, at.hour, at.minute, at.second, at.nanosecond, zone)
	}
	shown, guess := wall(time.UTC), wall(r.zone)
	// Where clocks are set the library gives one of the moments, or one near the gap. So all offsets that may hold are its own
	// and those beyond the changes around it.
	start, end := guess.ZoneBounds()
	near := []time.Time{guess}
	var changes []time.Time
	if !start.IsZero() {
		near, changes = append(near, start.Add(-time.Second)), append(changes, start)
	}
	if !end.IsZero() {
		near, changes = append(near, end), append(changes, end)
	}
	for _, n := range near {
		t := shown.Add(-offset(n.In(r.zone)))
		if offset(t.In(r.zone)) == offset(n.In(r.zone)) && !slices.ContainsFunc(found, t.Equal) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, time.Time.Compare)
	for _, change := range changes {
		skipped := change.Add(offset(change.Add(-time.Second).In(r.zone)))
		goesOn := change.Add(offset(change.In(r.zone)))
		if !shown.Before(skipped) && shown.Before(goesOn) {
			gap = change
		}
	}
	return found, gap
}

// offset is how far clocks are before UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// String gives a time of day as it is written here, as far as it goes.
func (c clock) String() string {
	t := time.Date(1970, time.January, 1, c.hour, c.minute, c.second, c.nanosecond, time.UTC)
	switch {
	case c.nanosecond != 0:
		return t.Format("15:04:05.999999999")
	case c.second != 0:
		return t.Format(time.TimeOnly)
	default:
		return t.Format("15:04")
	}
}
