package store

import (
	"fmt"
	"io/fs"

	"github.com/cockroachdb/errors"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// stopError is why the store can't go on before somebody has dealt with it.
type stopError struct {
	at     uint64 // the event it can't take in; zero when it is the file or the stream
	reason error
}

// otherStream is why the file is not of the stream: it has seen an event that is not there. It is let go when somebody has accepted
// that this event is lost.
type otherStream struct {
	seen  uint64 // the event that the file has come to
	words string
}

func (o *otherStream) Error() string { return o.words }

// Error says at which event, and why.
func (s *stopError) Error() string {
	if s.at == 0 {
		return s.reason.Error()
	}
	return fmt.Sprintf("at event %d: %v", s.at, s.reason)
}

// Unwrap gives the reason.
func (s *stopError) Unwrap() error { return s.reason }

func stopf(format string, args ...any) error {
	return &stopError{reason: errors.Newf(format, args...)}
}

// isFileError says whether an error comes from the file rather than from an event.
func isFileError(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) || errors.HasType(err, (*fs.PathError)(nil))
}

// isDamaged says whether the file is no whole SQLite file: it is built anew.
func isDamaged(err error) bool {
	return hasCode(err, func(code int) bool { return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB })
}

// hasCode says whether an error is SQLite's, and of a code.
func hasCode(err error, is func(code int) bool) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && is(e.Code()&0xff)
}
