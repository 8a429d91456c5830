package store

import (
	"math"
	"time"
)

// Times are stored as nanoseconds since 1970.
type instant int64

// forever is the end of what has none.
const forever instant = math.MaxInt64

// instantOf gives a time as it is stored. Times that have no such form, before 1678 and after 2261, are taken as the nearest that
// has one.
func instantOf(t time.Time) instant {
	switch year := t.UTC().Year(); {
	case year < 1678:
		return math.MinInt64
	case year > 2261:
		return forever - 1
	}
	return instant(t.UnixNano())
}

// time gives the time, zero for forever.
func (i instant) time() time.Time {
	if i == forever {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}
