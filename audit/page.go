package audit

import (
	"time"

	"github.com/cockroachdb/errors"
)

// Page says which piece of a long answer is asked for.
type Page struct {
	// Limit bounds the rows of the answer, MaxPageItems at most and by default.
	Limit int `json:"limit,omitempty"`
	// Cursor goes on after a page: it is that page's Next. The question MUST otherwise be the same. What it holds means
	// nothing to the asker.
	Cursor string `json:"cursor,omitempty"`
}

// Rows gives the limit within its bounds.
func (p Page) Rows() int {
	if p.Limit == 0 || p.Limit > MaxPageItems {
		return MaxPageItems
	}
	return p.Limit
}

// Moment is the pair of times a question is asked for.
type Moment struct {
	// At is when it was so; zero means now.
	At time.Time `json:"at,omitzero"`
	// KnownAt asks for what was known then; zero means for all that is known. Nothing was known of times after it, so At is
	// never later.
	KnownAt time.Time `json:"known-at,omitzero"`
}

// Basis says what an answer rests on.
type Basis struct {
	// Through is the last event that the audit store had taken in.
	Through uint64 `json:"through"`
	// Recorded is when that event was recorded.
	Recorded time.Time `json:"recorded,omitzero"`
}

// What an answer about assignments shows.
const (
	// ShowsTold means what nodes were told to run.
	ShowsTold = "told"
	// ShowsObserved means what nodes reported to run.
	ShowsObserved = "observed"
)

// Person is who did something: an opaque id and, where the actor directory has one, the name.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// String gives the name, or else the id.
func (p Person) String() string {
	if p.Name != "" {
		return p.Name
	}
	return p.ID
}

// invalidf gives an error marked ErrInvalid.
func invalidf(format string, args ...any) error {
	return errors.Mark(errors.NewWithDepthf(1, format, args...), ErrInvalid)
}
