package audit

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Names of the questions, as they stand in their subjects.
const (
	QuestionPosition    = "position"
	QuestionLog         = "log"
	QuestionProjections = "projections"
	QuestionVerify      = "verify"
	// QuestionTail is answered where the event stream is written, also while no projector is.
	QuestionTail = "tail"
)

// MaxWait bounds how long the service keeps a question open for something that has not happened yet.
const MaxWait = 30 * time.Second

// MaxKeys bounds the instances of one question: each costs a read of its own, and room for a page.
const MaxKeys = 16

// Duration is a span of time that travels as text, such as 1.5s.
type Duration time.Duration

// MarshalText gives the span in Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's notation.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.Newf("%q is not a span of time such as 1.5s", text)
	}
	*d = Duration(v)
	return nil
}

// wait is the span within the bounds.
func (d Duration) wait() time.Duration { return min(max(time.Duration(d), 0), MaxWait) }

// PositionQuestion asks which bucket revisions an event has led to.
type PositionQuestion struct {
	// Sequence is the event; zero asks for the positions as they are.
	Sequence uint64 `json:"sequence,omitempty"`
	// Wait is how long to wait for views that have not passed the event yet.
	Wait Duration `json:"wait,omitempty"`
	// Audit waits for the audit store too, where the projector keeps one.
	Audit bool `json:"audit,omitempty"`
}

// Positions say how far each view is.
type Positions struct {
	Sequence uint64 `json:"sequence"`
	// Tail is the stream's last event.
	Tail uint64 `json:"tail"`
	// Reached says that every view has passed the event, and the audit store if it was asked for.
	Reached bool           `json:"reached"`
	Views   []ViewPosition `json:"views"`
	// Audit is how far the audit store is; missing where the projector keeps none.
	Audit *StoreState `json:"audit,omitempty"`
}

// ViewPosition says how far one view is.
type ViewPosition struct {
	View string `json:"view"`
	// Bucket is the generation of the view's bucket that it fills.
	Bucket string `json:"bucket"`
	// Event is the last event the view has passed with all its values stored.
	Event uint64 `json:"event"`
	// Revision is the bucket sequence that led to. A copy of the bucket that has it shows the event.
	Revision uint64 `json:"revision"`
	// Stopped says why the view does not go on.
	Stopped string `json:"stopped,omitempty"`
	// Paused says that this is because a person has paused it.
	Paused bool `json:"paused,omitempty"`
	// Rebuilding says that its bucket is being built anew. The present one is read meanwhile, and nothing is added to it.
	Rebuilding bool `json:"rebuilding,omitempty"`
	// Parked counts the instances of which nothing is folded any more.
	Parked int `json:"parked,omitempty"`
}

// LogQuestion asks for events. All that is given must hold. Without After and Oldest the newest come first.
type LogQuestion struct {
	Aggregate string `json:"aggregate,omitempty"`
	// Keys picks instances: any of them.
	Keys []string `json:"keys,omitempty"`
	// Actors picks who did it, or on whose behalf: any of these opaque ids.
	Actors []string `json:"actors,omitempty"`
	// Types picks events by their stored names, with the version or without: any of them.
	Types []string `json:"types,omitempty"`
	// Node and Module pick what concerns them.
	Node   string `json:"node,omitempty"`
	Module string `json:"module,omitempty"`
	// Command and Correlation pick what came from one command, or from one conversation.
	Command     string `json:"command,omitempty"`
	Correlation string `json:"correlation,omitempty"`
	// Text picks what holds all of these words, or words that begin like them, anywhere in the event.
	Text string `json:"text,omitempty"`
	// Refused is RefusedWith or RefusedOnly; without it refused commands are left out.
	Refused string `json:"refused,omitempty"`
	// Since and Until bound the recorded time.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Limit bounds the events of the answer, MaxPageItems at most and by default.
	Limit int `json:"limit,omitempty"`
	// Before asks for events before this one only, newest first.
	Before uint64 `json:"before,omitempty"`
	// Oldest asks for the oldest first; After for those after this one only, which means oldest first too.
	Oldest bool   `json:"oldest,omitempty"`
	After  uint64 `json:"after,omitempty"`
	// Cursor goes on after a page, in the same direction: it is that page's Cursor, or with Oldest its Onward. It is for logs with
	// refused commands, whose places are two; the others can do with Before and After.
	Cursor string `json:"cursor,omitempty"`
	// Wait keeps a question for what comes after the newest open until something comes.
	Wait Duration `json:"wait,omitempty"`
}

// LogPage is a bounded piece of the log.
type LogPage struct {
	Items []Item `json:"items"`
	// Next is what to give as Before, or as After, to go on.
	Next uint64 `json:"next,omitempty"`
	// More says that there may be more in this direction. A page MAY be short, or empty, and have more behind it.
	More bool `json:"more,omitempty"`
	// Cursor is what to give as Cursor to go on. Newest first it is empty when there is no more; oldest first there may be more later, and
	// a log with refused commands always has one.
	Cursor string `json:"cursor,omitempty"`
	// Onward is what to give as Cursor, with Oldest, to go on with what came after the newest of this log. A log with refused commands
	// has it, newest first.
	Onward string `json:"onward,omitempty"`
	// Through is the last event that the audit store had taken in, and Tail that of the stream, as in [Basis]. They are missing when the
	// answer comes from the stream itself.
	Through uint64 `json:"through,omitempty"`
	Tail    uint64 `json:"tail,omitempty"`
}

func (q LogQuestion) forward() bool { return q.Oldest || q.After > 0 }

// needsStore says whether the question can only be answered from the audit store.
func (q LogQuestion) needsStore() bool {
	return len(q.Types) > 0 || q.Node != "" || q.Module != "" || q.Command != "" || q.Correlation != "" || q.Text != "" || q.Refused != "" || q.Cursor != ""
}

// Validate checks the question's form. It gives errors marked ErrInvalid, which name the field.
func (q LogQuestion) Validate() error {
	switch {
	case q.Refused != "" && q.Refused != RefusedWith && q.Refused != RefusedOnly:
		return invalidf("refused is %q: it is %s or %s, or left out", q.Refused, RefusedWith, RefusedOnly)
	case q.Refused != "" && q.After > 0:
		return invalidf("after is a place among events alone: with refused commands go on with a cursor")
	case q.Cursor != "" && q.Refused == "" && q.forward():
		return invalidf("a cursor is given, oldest first and without refused commands: go on with after")
	case q.Cursor != "" && (q.Before > 0 || q.After > 0):
		return invalidf("a cursor and a place to begin are given: one of them is enough")
	case q.Aggregate != "" && strings.ContainsAny(q.Aggregate, ".*> \t\r\n"):
		return errors.Mark(errors.Newf("aggregate is %q: it is one word, such as assignment", q.Aggregate), ErrInvalid)
	case len(q.Keys) > MaxKeys:
		return errors.Mark(errors.Newf("keys has %d: the limit is %d; ask for the others apart", len(q.Keys), MaxKeys), ErrInvalid)
	case q.Limit < 0:
		return errors.Mark(errors.Newf("limit is %d: it must be positive, or left out", q.Limit), ErrInvalid)
	case q.Before > 0 && q.forward():
		return errors.Mark(errors.New("before and after are given: newest first, or oldest first?"), ErrInvalid)
	case q.Wait > 0 && !q.forward():
		return errors.Mark(errors.New("wait needs after: only events after the newest can be waited for"), ErrInvalid)
	case !q.Since.IsZero() && !q.Until.IsZero() && q.Until.Before(q.Since):
		return errors.Mark(errors.Newf("until %s is before since %s", q.Until.Format(time.RFC3339), q.Since.Format(time.RFC3339)), ErrInvalid)
	}
	return nil
}

// matches says whether an event is asked for.
func (q LogQuestion) matches(e es.Event) bool {
	return (q.Aggregate == "" || q.Aggregate == e.Ref.Aggregate) &&
		anyOf(q.Keys, e.Ref.Key) &&
		anyOf(q.Actors, e.Command.Actor, e.Command.OnBehalfOf) &&
		(q.Since.IsZero() || !e.Recorded.Before(q.Since)) &&
		(q.Until.IsZero() || !e.Recorded.After(q.Until))
}

// unfiltered says whether every message is asked for, also one that is no event.
func (q LogQuestion) unfiltered() bool {
	return q.Aggregate == "" && len(q.Keys) == 0 && len(q.Actors) == 0 && q.Since.IsZero() && q.Until.IsZero()
}

func anyOf(wanted []string, found ...string) bool {
	if len(wanted) == 0 {
		return true
	}
	for _, w := range wanted {
		for _, f := range found {
			if w == f {
				return true
			}
		}
	}
	return false
}

// ProjectionsQuestion asks what the projector and its views are doing.
type ProjectionsQuestion struct{}

// TailQuestion asks where the event stream ends.
type TailQuestion struct{}

// Tail says where the event stream ends.
type Tail struct {
	Sequence uint64 `json:"sequence"`
}

// VerifyQuestion asks for a check of the whole record.
type VerifyQuestion struct{}

// decode reads a question strictly: a misspelt filter that is dropped would give a wrong answer. It gives ErrInvalid.
func decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.Mark(errors.Wrap(err, "the query's body"), ErrInvalid)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.Mark(errors.New("the query's body goes on after its JSON value"), ErrInvalid)
	}
	return nil
}
