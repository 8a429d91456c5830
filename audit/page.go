package audit

import (
	"fmt"
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

// MaxMissing bounds what an answer lists as missing.
const MaxMissing = 10

// WhySkipped is why an event is missing that somebody had left out.
const WhySkipped = "skipped"

// Missing is what is not in an answer although it may belong there: an event that could not be folded, with those of the same instance
// that came after it, or one that somebody had left out.
type Missing struct {
	Event uint64 `json:"event"`
	// Instance is the aggregate and the key, Type the event's type; empty where nobody can say whose event it is.
	Instance string `json:"instance,omitempty"`
	Type     string `json:"type,omitempty"`
	// Why is unknown-type, unreadable, unfolded or skipped, and Reason the same in a sentence.
	Why    string `json:"why"`
	Reason string `json:"reason,omitempty"`
	// Behind counts the events of the instance that came after it and are missing too.
	Behind uint64 `json:"behind,omitempty"`
}

// String says it in a sentence.
func (m Missing) String() string {
	of := ""
	if m.Instance != "" {
		of = " of " + m.Instance
	}
	switch {
	case m.Why == WhySkipped:
		return fmt.Sprintf("event %d%s is left out: %s", m.Event, of, m.Reason)
	case m.Behind > 0:
		return fmt.Sprintf("event %d%s can't be folded (%s), and %d events behind it are left out too", m.Event, of, m.Why, m.Behind)
	}
	return fmt.Sprintf("event %d%s can't be folded (%s)", m.Event, of, m.Why)
}

// Basis says what an answer rests on.
type Basis struct {
	// Through is the last event that the audit store had taken in.
	Through uint64 `json:"through"`
	// Recorded is when that event was recorded.
	Recorded time.Time `json:"recorded,omitzero"`
	// Missing lists what is not in the answer although it may belong there, at most [MaxMissing] of so many.
	Missing      []Missing `json:"missing,omitempty"`
	MissingCount int       `json:"missing-count,omitempty"`
	// Tail is the last event of the stream when the question was asked; zero when nobody could tell. When it is above Through, the
	// answer leaves out what was recorded last.
	Tail uint64 `json:"tail,omitempty"`
}

// Misses says whether the answer may leave out something that was recorded up to a time; the zero time asks for all.
func (b Basis) Misses(known time.Time) bool {
	return b.Through < b.Tail && (known.IsZero() || !b.Recorded.After(known))
}

// against notes where the stream ended when the question was asked.
func (b *Basis) against(tail uint64) { b.Tail = tail }

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
