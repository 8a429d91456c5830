package audit

import (
	"fmt"

	"github.com/cockroachdb/errors"
)

// LogPlace is how far somebody has read the log. Events and refused commands stand in streams of their own, each in its own order, so
// it is a place in both: what stands up to there was given, and nothing else.
type LogPlace struct {
	Event, Refused uint64
}

// String gives the place as a cursor holds it.
func (p LogPlace) String() string { return fmt.Sprintf("e%d.r%d", p.Event, p.Refused) }

// ParseLogPlace reads a cursor. It gives errors marked [ErrInvalid].
func ParseLogPlace(cursor string) (LogPlace, error) {
	var p LogPlace
	if _, err := fmt.Sscanf(cursor, "e%d.r%d", &p.Event, &p.Refused); err != nil || p.String() != cursor {
		return LogPlace{}, errors.Mark(errors.Newf("cursor %q is none of this question: give the one the page before has", cursor), ErrInvalid)
	}
	return p, nil
}

// After gives the place that is farther, in both streams.
func (p LogPlace) After(q LogPlace) LogPlace {
	return LogPlace{Event: max(p.Event, q.Event), Refused: max(p.Refused, q.Refused)}
}
