package project

import (
	"fmt"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// stopError is why a view stops for good: trying again would come to the same.
type stopError struct {
	// at is the event the view could not pass; zero when it is the bucket that stops it.
	at uint64
	// typ is that event's type, as far as it can be told.
	typ    string
	reason error
	// renew is set when a new generation of the bucket lets the view go on.
	renew bool
	// newer is set when a newer program wrote the bucket: this one leaves it alone.
	newer bool
}

func (s *stopError) Error() string {
	if s.at == 0 {
		return s.reason.Error()
	}
	return fmt.Sprintf("stopped at event %d: %v", s.at, s.reason)
}

func (s *stopError) Unwrap() error { return s.reason }

// stopAt makes a stop of what keeps a view from passing an event.
func stopAt(event uint64, typ string, reason error) error {
	return &stopError{at: event, typ: typ, reason: reason}
}

// stopf makes a stop of what is wrong with a bucket.
func stopf(format string, args ...any) error {
	return &stopError{reason: errors.Newf(format, args...)}
}

// wornf makes a stop of a bucket that only a new generation follows on.
func wornf(format string, args ...any) error {
	return &stopError{reason: errors.Newf(format, args...), renew: true}
}

// newerf makes a stop of a bucket that a newer program wrote.
func newerf(format string, args ...any) error {
	return &stopError{reason: errors.Newf(format, args...), newer: true}
}

// errRetake means that the bucket no longer ends where the view left it: the view is to be taken up from it again.
var errRetake = errors.New("the bucket has gone back")

// errGivenUp means that another generation is to be built in the place of the one that was begun.
var errGivenUp = errors.New("another generation is built in its place")

// errPaused means that the view is to fold no further until it is told otherwise.
var errPaused = errors.New("paused")

// errLeftBehind means that the view took nothing from the reader for so long that it has lost its place there.
var errLeftBehind = errors.New("left behind by the reader")

// final says whether an event's value can never be stored, however often it is tried.
func final(err error) bool {
	return errors.IsAny(err, es.ErrTooLarge, es.ErrName)
}
